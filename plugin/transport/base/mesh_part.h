// MeshPart: what one further progress thread carries of a mesh: some streams of every link that the
// mesh opens, as links of its own. So several threads move what is between the same nodes, and
// share nothing but what is said here. Frames of one thread stay among the parts of its number on
// all nodes.
//
// Threads: calls of Mesh, and the sink's, on the part's own thread; start(), run_and_wait() and the
// call of `on_told` on that of the mesh, which never waits for it in the other direction; wake()
// and tell() on any.
#pragma once

#include <functional>

#include "plugin/transport/base/mesh.h"
#include "topology/base/status.h"

namespace riffle {

class MeshPart : public Mesh {
 public:
  struct Hooks {
    FrameSink* sink = nullptr;
    std::function<void()> on_wake;  // some time after wake(), on the part's thread
    std::function<void()> on_told;  // some time after tell(), on the mesh's
  };
  // Before the mesh opens any link; once. What the hooks name must outlive the mesh.
  virtual void start(Hooks hooks) = 0;
  // Runs `f` on the part's thread and returns after it ran; what it throws reaches the caller. For
  // set-up, changes of plans and the end: it allocates.
  virtual void run_and_wait(const std::function<void()>& f) = 0;
  virtual void wake() = 0;
  virtual void tell() = 0;
  // The part's work threw: as if the mesh's had (FrameSink::failed). The mesh's thread.
  virtual void fail(const Status& why) = 0;
};

}  // namespace riffle
