// Package loop runs one campaign: it is the only owner of the campaign's state. Everything else talks to it through
// Deliver, and it talks to workers through a scheduler.Dispatcher.
//
//	Deliver --> inbox --> handle outcome --> events --> Submit (memory) --> sender: after the commit,
//	                      plan next trials --^                              acknowledge and dispatch, in order
//
// The state runs ahead of the disk by the batches under way, but nothing leaves the process (no acknowledgement, no job)
// before the batch that it belongs to is durable. Outcomes are handled one at a time and free slots are filled after each,
// so that the log, and with it every proposal, is a function of the order of outcomes and the seed.
package loop
