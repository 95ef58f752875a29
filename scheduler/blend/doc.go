// Package blend decides, purely, how a campaign's device time is shared between tuning structures and trying new ones, and what the
// models are asked for next. Both halves are held to one currency: expected relative improvement of the best so far per device-second.
// It reads no clock, no store and no random numbers: the same inputs give the same queue.
package blend
