#include "lab/nccl_host/work/program.h"

#include <algorithm>

namespace riffle::host {
namespace {

Primitive send(Local from, std::size_t offset, std::size_t count) {
  return {.send = true, .source = from, .source_offset = offset, .count = count};
}
Primitive receive(std::size_t offset, std::size_t count) {
  return {.receive = true,
          .target = Local::kOutput,
          .target_offset = offset,
          .count = count,
          .last = true};
}
Primitive receive_reduce_send(std::size_t offset, std::size_t count) {
  return {.receive = true,
          .send = true,
          .source = Local::kInput,
          .source_offset = offset,
          .count = count};
}
Primitive receive_copy_send(std::size_t offset, std::size_t count) {
  return {.receive = true,
          .send = true,
          .target = Local::kOutput,
          .target_offset = offset,
          .count = count};
}
Primitive receive_reduce_copy(std::size_t from, std::size_t to, std::size_t count) {
  return {.receive = true,
          .source = Local::kInput,
          .target = Local::kOutput,
          .source_offset = from,
          .target_offset = to,
          .count = count,
          .last = true};
}
Primitive copy_send(std::size_t from, std::size_t to, std::size_t count) {
  return {.send = true,
          .source = Local::kInput,
          .target = Local::kOutput,
          .source_offset = from,
          .target_offset = to,
          .count = count};
}

// The rank that is d places after this one, as an index of blocks.
std::size_t block_after(RingPlace place, int d) {
  return static_cast<std::size_t>((place.index + d) % place.ranks);
}

template <class F>
void each_chunk(const Part& part, F&& f) {
  for (std::size_t at = 0; at < part.count; at += part.chunk) {
    f(part.offset + at, std::min(part.chunk, part.count - at));
  }
}

}  // namespace

std::vector<Primitive> ring_all_reduce(const Part& part, RingPlace place,
                                       std::size_t element_bytes) {
  std::vector<Primitive> out;
  const auto ranks = static_cast<std::size_t>(place.ranks);
  std::size_t chunk = part.chunk;
  const std::size_t loop = ranks * chunk;
  for (std::size_t done = 0; done < part.count; done += loop) {
    const std::size_t left = part.count - done;
    if (left < loop) chunk = round_up((left + ranks - 1) / ranks, 16 / element_bytes);
    // Chunk `block` of this loop; chunks beyond the end are empty but still take their steps.
    auto offset = [&](std::size_t block) {
      return part.offset + done + std::min(left, block * chunk);
    };
    auto count = [&](std::size_t block) {
      return block * chunk >= left ? 0 : std::min(chunk, left - block * chunk);
    };
    std::size_t b = block_after(place, place.ranks - 1);
    out.push_back(send(Local::kInput, offset(b), count(b)));
    for (int j = 2; j < place.ranks; ++j) {
      b = block_after(place, place.ranks - j);
      out.push_back(receive_reduce_send(offset(b), count(b)));
    }
    b = block_after(place, 0);
    Primitive middle = receive_reduce_copy(offset(b), offset(b), count(b));
    middle.send = true;
    out.push_back(middle);
    for (int j = 1; j < place.ranks - 1; ++j) {
      b = block_after(place, place.ranks - j);
      out.push_back(receive_copy_send(offset(b), count(b)));
    }
    b = block_after(place, 1);
    Primitive end = receive(offset(b), count(b));
    end.last = false;  // the sender has finished the value
    out.push_back(end);
  }
  return out;
}

std::vector<Primitive> ring_all_gather(const Part& part, RingPlace place, std::size_t total,
                                       bool in_place) {
  std::vector<Primitive> out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    const std::size_t own = at + block_after(place, 0) * total;
    out.push_back(in_place ? send(Local::kOutput, own, n) : copy_send(at, own, n));
    for (int j = 1; j < place.ranks - 1; ++j) {
      out.push_back(receive_copy_send(at + block_after(place, place.ranks - j) * total, n));
    }
    out.push_back(receive(at + block_after(place, 1) * total, n));
  });
  return out;
}

std::vector<Primitive> ring_reduce_scatter(const Part& part, RingPlace place, std::size_t total) {
  std::vector<Primitive> out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    out.push_back(send(Local::kInput, at + block_after(place, place.ranks - 1) * total, n));
    for (int j = 2; j < place.ranks; ++j) {
      out.push_back(receive_reduce_send(at + block_after(place, place.ranks - j) * total, n));
    }
    out.push_back(receive_reduce_copy(at + block_after(place, 0) * total, at, n));
  });
  return out;
}

std::vector<Primitive> ring_broadcast(const Part& part, RingPlace place, int root, bool in_place) {
  std::vector<Primitive> out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    if (place.index == root) {
      out.push_back(in_place ? send(Local::kInput, at, n) : copy_send(at, at, n));
    } else if ((place.index + 1) % place.ranks == root) {
      out.push_back(receive(at, n));
    } else {
      out.push_back(receive_copy_send(at, n));
    }
  });
  return out;
}

std::vector<Primitive> ring_reduce(const Part& part, RingPlace place, int root) {
  std::vector<Primitive> out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    if ((place.index + place.ranks - 1) % place.ranks == root) {
      out.push_back(send(Local::kInput, at, n));
    } else if (place.index == root) {
      out.push_back(receive_reduce_copy(at, at, n));
    } else {
      out.push_back(receive_reduce_send(at, n));
    }
  });
  return out;
}

std::vector<Primitive> tree_up(const Part& part, TreeRole role) {
  std::vector<Primitive> out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    if (role == TreeRole::kLeaf) {
      out.push_back(send(Local::kInput, at, n));
    } else if (role == TreeRole::kInner) {
      out.push_back(receive_reduce_send(at, n));
    } else {
      Primitive turn = receive_reduce_copy(at, at, n);
      turn.send = true;
      out.push_back(turn);
    }
  });
  return out;
}

std::vector<Primitive> tree_down(const Part& part, TreeRole role) {
  std::vector<Primitive> out;
  if (role == TreeRole::kRoot) return out;
  each_chunk(part, [&](std::size_t at, std::size_t n) {
    Primitive p = role == TreeRole::kLeaf ? receive(at, n) : receive_copy_send(at, n);
    p.last = false;
    out.push_back(p);
  });
  return out;
}

std::vector<Primitive> stream(const Part& part, bool sending) {
  std::vector<Primitive> out;
  auto one = [&](std::size_t at, std::size_t n) {
    out.push_back(sending ? send(Local::kInput, at, n) : receive(at, n));
  };
  each_chunk(part, one);
  if (part.count == 0) one(part.offset, 0);  // an empty message is a message
  return out;
}

std::vector<Primitive> collnet(std::size_t count, std::size_t chunk, int channel, int channels,
                               bool sending) {
  std::vector<Primitive> out;
  const std::size_t loop = chunk * static_cast<std::size_t>(channels);
  for (std::size_t done = 0; done < count; done += loop) {
    const std::size_t at = std::min(count, done + static_cast<std::size_t>(channel) * chunk);
    const std::size_t n = std::min(chunk, count - at);
    out.push_back(sending ? send(Local::kInput, at, n) : receive(at, n));
  }
  return out;
}

}  // namespace riffle::host
