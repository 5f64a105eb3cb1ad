// Drops a result that must be looked at: must not build.
namespace deut::probes {

[[nodiscard]] inline bool Store() { return false; }

void Forget() { Store(); }

}  // namespace deut::probes
