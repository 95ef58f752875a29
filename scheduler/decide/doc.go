// Package decide holds what a campaign knows and how it chooses, as pure functions: no clock, no I/O, no randomness.
//
//	events --Apply--> State --Next--> Decision --(loop plans)--> planned event
//	outcome --Summarize--> outcome event --Judge--> verdict event
//
// State is a fold over the event log, so that a scheduler that was killed comes back to exactly the state it had, and
// proposes what it would have proposed. A campaign's life:
//
//	A/A run --> search (defaults, probes, competition, re-measuring, confirmations) --> ending: last confirmation, replay --> done
package decide
