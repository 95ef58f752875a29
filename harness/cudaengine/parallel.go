package cudaengine

import (
	"runtime"
	"sync"
)

// parallel runs fn over [0, n) in pieces of at least grain, one a core, and waits.
func parallel(n, grain int, fn func(from, to int)) {
	workers := min(runtime.GOMAXPROCS(0), (n+grain-1)/grain)
	if workers <= 1 {
		fn(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { fn(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}
