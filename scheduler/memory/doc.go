// Package memory is the store: one SQLite file that is the only source of truth for campaigns, structures, planned trials,
// outcomes, records and events. It decides nothing and knows nothing of optimizers.
//
// One scheduler owns a store at a time (a lock on the folder); readers may look at any time. Writes go through one
// committer, which puts the batches that wait into one transaction and makes it durable (WAL, synchronous=FULL), so that
// many writers share one flush of the disk:
//
//	Submit(batch) --> queue --> [ begin | batch | batch | ... | commit ] --> Commit.Wait returns
//
// An outcome is stored once: a unique index lets the first final outcome of a trial win.
package memory
