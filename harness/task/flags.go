package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"ridgepoint/harness"
)

// allowedFlags are the compiler flags that a task may write. They optimise; none reads or writes a file, changes what is
// included, or loosens the arithmetic (that is fast_math's part).
var allowedFlags = map[harness.Target]*regexp.Regexp{
	harness.TargetCPU: regexp.MustCompile(`^(-O[0123s]|-g|-fopenmp(-simd)?|-funroll(-all)?-loops|-fno-(math-errno|trapping-math|signed-zeros|strict-aliasing|` +
		`tree-vectorize|tree-slp-vectorize|unroll-loops|semantic-interposition|plt|stack-protector|exceptions|inline)|-fstrict-aliasing|-ftree-(loop-)?vectorize|` +
		`-ftree-slp-vectorize|-ffp-contract=(off|on)|-fomit-frame-pointer|-fpeel-loops|-fprefetch-loop-arrays|-floop-(interchange|block|nest-optimize)|` +
		`-ftree-loop-distribution|-fvect-cost-model=(unlimited|dynamic|cheap|very-cheap)|-falign-(functions|loops|jumps)=[0-9]{1,3}|` +
		`-mprefer-vector-width=(none|128|256|512)|-mtune=[a-z0-9._-]{1,32})$`),
	harness.TargetCUDA: regexp.MustCompile(`^(--extra-device-vectorization|-extra-device-vectorization|--restrict|-restrict|--?fmad=(true|false)|--?lineinfo|-lineinfo|` +
		`--?dopt=on|--?minimal|-Xptxas=?(-O[0-3]|-v|-dlcm=c[agsv]|-dscm=w[bt])|--ptxas-options=(-O[0-3]|-v|-dlcm=c[agsv]|-dscm=w[bt])|-O[0-3])$`),
	harness.TargetHIP: regexp.MustCompile(`^(-O[0-3]|-funroll-loops|-fno-unroll-loops|-ffp-contract=(off|on|fast)|-mwavefrontsize64|-mno-wavefrontsize64|-mcumode|-mno-cumode)$`),
}

// loose names the flags that are another spelling of fast_math.
var loose = regexp.MustCompile(`fast-?_?math|-Ofast|unsafe-math|finite-math|associative-math|reciprocal-math|[-=](ftz|prec-div|prec-sqrt)|-ffp-contract=fast`)

func (d *taskDecoder) flags(n *node, what string, t harness.Target) []string {
	out := d.texts(n, what)
	for i, flag := range out {
		if d.err != nil {
			return nil
		}
		item := d.list(n, what)[i]
		switch {
		case flag == "" && strings.Contains(what, "search_flags"):
		case allowedFlags[t].MatchString(flag):
		case loose.MatchString(flag):
			d.fail(item, "write `fast_math: true` or `fast_math: search` instead: it is the person's word", "%s: %s loosens the arithmetic", what, flag)
		default:
			d.fail(item, "use a flag that optimises without reading files (see the list in harness/task/flags.go)", "%s: flag %q is not allowed for %s", what, flag, t)
		}
	}
	return out
}

func standards(t harness.Target) []string {
	switch t {
	case harness.TargetCPU:
		return []string{"c99", "c11", "c17", "gnu99", "gnu11", "gnu17"}
	default:
		return []string{"c++14", "c++17", "c++20"}
	}
}

// maxIncludeBytes bounds the headers that a task brings along; a header-only library such as CUTLASS has 20 MB.
const maxIncludeBytes = 64 << 20

// hashFolders is a SHA-256 over the names and contents of all files below the folders, in hex.
func hashFolders(f folder, dirs []string) (string, error) {
	if len(dirs) == 0 {
		return "", nil
	}
	h := sha256.New()
	var total int64
	for _, dir := range dirs {
		start := strings.TrimPrefix(dir, "/")
		err := fs.WalkDir(f.fsys, start, func(p string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if total += info.Size(); total > maxIncludeBytes || !info.Mode().IsRegular() {
				return fmt.Errorf("%s: not a regular file, or over %d MiB in all", path.Base(p), maxIncludeBytes>>20)
			}
			b, err := fs.ReadFile(f.fsys, p)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s\x00%d\x00", strings.TrimPrefix(p, start), len(b))
			h.Write(b)
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// validGlob reports whether a structures pattern is well formed and stays within the task's folder.
func validGlob(glob string) bool {
	if glob == "" || path.IsAbs(glob) || strings.HasPrefix(path.Clean(glob), "..") {
		return false
	}
	_, err := path.Match(glob, "")
	return err == nil
}
