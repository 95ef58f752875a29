// Package workers holds the wire payloads and queue names between schedulers and workers. Subpackage queue alone imports
// asynq; compile and gpu are the handlers; fleet keeps who is there; limits are permits and token buckets.
package workers
