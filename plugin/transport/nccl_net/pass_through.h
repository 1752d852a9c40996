// Makes a NET table of NCCL's stand on a library's: each member becomes the library's function
// itself where their types agree, so that the call costs nothing, and a translation
// (translate.h) where they do not. What the library leaves null stays null.
#pragma once

#include <string>
#include <type_traits>

#include "plugin/transport/nccl_net/translate.h"

namespace riffle::nccl_net {

// Names of the members without which NCCL cannot drive the library; empty: all are there.
template <class Theirs>
std::string missing_functions(const Theirs& t) {
  std::string missing;
  const auto need = [&](bool is_there, const char* name) {
    if (!is_there) missing.append(missing.empty() ? "" : ", ").append(name);
  };
  need(t.init != nullptr, "init");
  need(t.devices != nullptr, "devices");
  need(t.getProperties != nullptr, "getProperties");
  need(t.listen != nullptr, "listen");
  need(t.connect != nullptr, "connect");
  need(t.accept != nullptr, "accept");
  need(t.regMr != nullptr, "regMr");
  need(t.deregMr != nullptr, "deregMr");
  need(t.isend != nullptr, "isend");
  need(t.irecv != nullptr, "irecv");
  need(t.test != nullptr, "test");
  need(t.closeSend != nullptr, "closeSend");
  need(t.closeRecv != nullptr, "closeRecv");
  need(t.closeListen != nullptr, "closeListen");
  if constexpr (requires { t.finalize; }) need(t.finalize != nullptr, "finalize");
  return missing;
}

// Members that are in some versions only, null where the library lacks them. As with NCCL, virtual
// devices need v9 on both sides, device offload v7, attributes v11.
template <class Ours, class Theirs>
void pass_optional(const Theirs& t, Ours* o) {
  if constexpr (requires { o->regMrDmaBuf; }) {
    o->regMrDmaBuf = nullptr;
    if constexpr (requires { t.regMrDmaBuf; }) o->regMrDmaBuf = t.regMrDmaBuf;
  }
  if constexpr (requires { o->getDeviceMr; }) {
    o->getDeviceMr = nullptr;
    o->irecvConsumed = nullptr;
    if constexpr (requires { t.getDeviceMr; }) {
      o->getDeviceMr = t.getDeviceMr;
      o->irecvConsumed = t.irecvConsumed;
    }
  }
  if constexpr (requires { o->makeVDevice; }) {
    o->makeVDevice = nullptr;
    if constexpr (requires { t.makeVDevice; }) {
      if constexpr (std::is_same_v<decltype(o->makeVDevice), decltype(t.makeVDevice)>) {
        o->makeVDevice = t.makeVDevice;
      } else if (t.makeVDevice != nullptr) {
        o->makeVDevice = Translate<Theirs>::make_v_device;
      }
    }
  }
  if constexpr (requires { o->setNetAttr; }) {
    o->setNetAttr = nullptr;
    if constexpr (requires { t.setNetAttr; }) {
      if (t.setNetAttr != nullptr) o->setNetAttr = Translate<Theirs>::set_net_attr;
    }
  }
}

// All members but name, init and finalize, which stay the border's own. `t` is table_of_library.
template <class Ours, class Theirs>
void pass_through(const Theirs& t, Ours* o) {
#define RIFFLE_PASS(member, translation)                                   \
  if constexpr (std::is_same_v<decltype(o->member), decltype(t.member)>) { \
    o->member = t.member;                                                  \
  } else {                                                                 \
    o->member = Translate<Theirs>::translation;                            \
  }
  RIFFLE_PASS(getProperties, get_properties)
  RIFFLE_PASS(accept, accept)
  RIFFLE_PASS(regMr, reg_mr)
  RIFFLE_PASS(isend, isend)
  RIFFLE_PASS(irecv, irecv)
  if constexpr (requires { o->finalize; }) {  // NCCL's context is ours (context.h)
    o->listen = Translate<Theirs>::listen;
    o->connect = Translate<Theirs>::connect;
  } else {
    RIFFLE_PASS(listen, listen)
    RIFFLE_PASS(connect, connect)
  }
#undef RIFFLE_PASS
  o->devices = t.devices;
  o->deregMr = t.deregMr;
  o->iflush = t.iflush;
  o->test = t.test;
  o->closeSend = t.closeSend;
  o->closeRecv = t.closeRecv;
  o->closeListen = t.closeListen;
  pass_optional(t, o);
}

}  // namespace riffle::nccl_net
