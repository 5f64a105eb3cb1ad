// Reads a guarded variable without its mutex: must not build.
namespace deut::probes {

class __attribute__((capability("mutex"))) Mutex {};

class Counter {
 public:
  int value() const { return value_; }

 private:
  Mutex mutex_;
  int value_ __attribute__((guarded_by(mutex_))) = 0;
};

int Read(const Counter& counter) { return counter.value(); }

}  // namespace deut::probes
