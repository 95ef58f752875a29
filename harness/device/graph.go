package device

import (
	"errors"
	"unsafe"
)

// Graph is a captured sequence of work that is launched as one.
type Graph struct{ graph, exec uintptr }

// Capture records what fn queues on the stream, without running it, and instantiates it.
func (s *Session) Capture(st Stream, fn func() error) (*Graph, error) {
	const relaxed = 2
	if err := s.driver.call(fnCaptureBegin, uintptr(st), relaxed); err != nil {
		return nil, err
	}
	failed := fn()
	g := new(Graph)
	err := s.driver.call(fnCaptureEnd, uintptr(st), uintptr(unsafe.Pointer(&g.graph)))
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	if err := s.driver.call(fnGraphInstantiate, uintptr(unsafe.Pointer(&g.exec)), g.graph, 0); err != nil {
		return nil, errors.Join(err, s.driver.call(fnGraphDestroy, g.graph))
	}
	return g, nil
}

// LaunchGraph queues the graph on the stream.
func (s *Session) LaunchGraph(st Stream, g *Graph) error {
	return s.driver.call(fnGraphLaunch, g.exec, uintptr(st))
}

// FreeGraph gives the graph back.
func (s *Session) FreeGraph(g *Graph) error {
	return errors.Join(s.driver.call(fnGraphExecDestroy, g.exec), s.driver.call(fnGraphDestroy, g.graph))
}
