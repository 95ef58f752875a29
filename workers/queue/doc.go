// Package queue carries jobs from schedulers to workers and outcomes back, over asynq on a real Redis or on one embedded in
// the process. It is the only importer of asynq, and it alone turns payloads into nouns and back. It must not judge kernels
// (packages compile and gpu do, through a harness) nor choose what to run (scheduler/loop does).
//
// A task of asynq, seen from here. Its id is (campaign, trial, attempt, stage), so each arrow may be walked twice:
//
//	            Dispatch                 take                 handler returns nil
//	(planned) ───────────> pending ─────────────> active ──────────────────────────> (gone)
//	                          ^                    │ │ infra error: retry, later here or elsewhere
//	                          │   reaper: holder   │ │ refused, or its workers died on it: parked with the reason
//	                          └──── is dead ───────┘
//
// What asynq does that is changed here, and why:
//   - its recoverer compares lease times that hosts wrote by their own clocks, so minutes of skew would run tasks twice: a
//     client hook answers its listing with nothing, and the reaper takes its place (recover.go, reaper.go);
//   - it cancels a handler's context after 30 s without Redis: work goes on under the process's own context, and what it
//     brings is spooled;
//   - it reuses the slot of a handler that it gave up: devices have their own mutex here, and the child's flock;
//   - its Client registers a queue once in its life: it is made anew when Redis lost its data (the epoch changed).
package queue
