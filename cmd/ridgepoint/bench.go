package main

// benchCmd measures parts of Ridgepoint.
type benchCmd struct {
	Optimizer benchOptimizerCmd `cmd:"" help:"Run search strategies against recorded tuning spaces."`
}
