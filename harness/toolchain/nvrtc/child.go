package nvrtc

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// childArgument is the hidden first argument that makes a process a compiler child; the library's path follows.
const childArgument = "__nvrtc"

type request struct {
	Source  string   `json:"source"`
	Name    string   `json:"name"`
	Options []string `json:"options"`
}

type reply struct {
	Version [2]int `json:"version"`
	Image   []byte `json:"image,omitempty"`
	Log     string `json:"log,omitempty"`
	Error   string `json:"error,omitempty"`
}

// maxLog and maxImage bound what a child sends: the longest useful log is far shorter, and the largest cubin seen has 4 MB.
const (
	maxLog   = 64 << 10
	maxImage = 64 << 20
)

// Main serves as a compiler child when args (without the program's name) ask for it, and reports whether they did. It ends
// when its standard input closes.
func Main(args []string) bool {
	if len(args) != 2 || args[0] != childArgument {
		return false
	}
	debug.SetGCPercent(400)
	if err := serve(args[1], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// warmSource makes the compiler load its own tables, which the first compile otherwise pays for (160 ms against 20).
const warmSource = `extern "C" __global__ void warm(float* p) { p[threadIdx.x] = expf(p[threadIdx.x]); }`

func serve(path string, in io.Reader, out io.Writer) error {
	enc, dec := json.NewEncoder(out), json.NewDecoder(in)
	lib, err := open(path)
	if err != nil {
		return enc.Encode(reply{Error: err.Error()})
	}
	if _, _, err := lib.compile(warmSource, "warm.cu", lib.warm); err != nil {
		return enc.Encode(reply{Error: err.Error()})
	}
	if err := enc.Encode(reply{Version: lib.version}); err != nil {
		return err
	}
	for {
		var rq request
		if err := dec.Decode(&rq); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a compile request: %w", err)
		}
		r := reply{Version: lib.version}
		r.Image, r.Log, err = lib.compile(rq.Source, rq.Name, rq.Options)
		switch {
		case err != nil:
			r.Error = err.Error()
		case len(r.Image) > maxImage:
			r.Image, r.Error = nil, fmt.Sprintf("the image has %d bytes, more than the %d allowed", len(r.Image), maxImage)
		}
		if len(r.Log) > maxLog {
			r.Log = r.Log[:maxLog]
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
}
