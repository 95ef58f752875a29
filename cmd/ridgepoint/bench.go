package main

// benchCmd measures parts of Ridgepoint.
type benchCmd struct {
	Throughput benchThroughputCmd `cmd:"" help:"Tune one structure and say how many evaluations a second that gives."`
	Optimizer  benchOptimizerCmd  `cmd:"" help:"Run search strategies against recorded tuning spaces."`
	Queue      benchQueueCmd      `cmd:"" help:"Take scripted trials through scheduler, store, queue and workers."`
}
