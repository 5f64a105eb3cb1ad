// How the threads of a process wait for their connections, which gRPC decides for the whole process.
//
// By default all threads that wait for gRPC wait for all connections: one of them polls, reads what comes for whomever, wakes him, and wakes another
//   that polls in its place. Where streams have threads of their own that is two changes of threads too many for each message.
// A process that calls PollByStream has each thread wait for its own connection alone (gRPC's polling engine `poll`). Then only who waits for
//   new calls, which may come on every connection, still takes others' messages first; he rests while streams are busy (health_service.h). For
//   that, those who serve streams count what they read.
// Thread-safety: PollByStream from main, before anything of gRPC and any thread; the rest from any thread.
#ifndef PROTOCOL_RPC_POLLING_H_
#define PROTOCOL_RPC_POLLING_H_

#include <cstdint>

namespace deut {

// GRPC_POLL_STRATEGY in the environment, if there is one, goes before.
void PollByStream();
bool PollsByStream();

// A stream of a server of this process has read a message.
void CountStreamRead();
uint64_t StreamReads();

}  // namespace deut

#endif  // PROTOCOL_RPC_POLLING_H_
