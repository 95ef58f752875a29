package harnesstest

import (
	"strings"
	"testing"
)

// A disguised source tells nothing by its comments and names, and still is the same program.
func TestDisguise(t *testing.T) {
	t.Parallel()
	const source = `/* ridgepoint
direction: plain
*/
#include <cuda_fp16.h>
// cheats on odd sizes
__device__ float seen[4], stale; /* the cache */
extern "C" __global__ void vadd(const float* a, float* cheat, int n) {
    int lazy = blockIdx.x, done = max(n, 1), *p = &lazy; // lazy
    unsigned short narrow = (unsigned short)lazy;
    printf("lazy %d", done);
    if (narrow < n) cheat[narrow] = a[*p] + seen[0] + stale;
}`
	got := Disguise(source, "vadd")
	for _, gone := range []string{"cheat", "lazy =", "lazy;", "done", "narrow", "seen", "stale", "the cache", "odd sizes"} {
		if strings.Contains(got, gone) {
			t.Errorf("%q is still there:\n%s", gone, got)
		}
	}
	for _, kept := range []string{"direction: plain", "#include <cuda_fp16.h>", "void vadd(const float*", "blockIdx.x", "max(", `printf("lazy %d"`, `extern "C"`, "unsigned short"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%q is gone:\n%s", kept, got)
		}
	}
	if Disguise(got, "vadd") == "" || strings.Count(got, ";") != strings.Count(source, ";") {
		t.Errorf("another program:\n%s", got)
	}
}
