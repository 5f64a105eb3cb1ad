// How the threads of a process wait for their connections, which gRPC decides for the whole process.
//
// By default all threads that wait for gRPC wait for all connections: one of them polls, reads what comes for any of them, and wakes the
//   thread that it is for. Where streams have threads of their own, as those of a client have, that is two changes of threads too many for
//   each message.
// A process that calls PollByStream has each thread wait for its own connection alone (gRPC's polling engine `poll`).
// Thread-safety: from main, before anything of gRPC and any thread.
#ifndef PROTOCOL_RPC_POLLING_H_
#define PROTOCOL_RPC_POLLING_H_

namespace deut {

// GRPC_POLL_STRATEGY in the environment, if there is one, goes before.
void PollByStream();

}  // namespace deut

#endif  // PROTOCOL_RPC_POLLING_H_
