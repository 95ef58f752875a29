// Package codec converts between float64 and the raw little-endian elements of every dtype. Encoding rounds once, to nearest
// and ties to even, straight from float64. It knows formats, not tasks.
package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"ridgepoint/harness"
)

// grain is the least number of elements that is worth a goroutine.
const grain = 1 << 16

// Decode writes the elements of src into dst. len(src) must be len(dst) times the dtype's size. An int64 beyond 2^53 is
// rounded; a bool is 0 or 1, any byte but 0 counting as 1.
func Decode(dst []float64, src []byte, dt harness.DType) error {
	if err := check(len(dst), len(src), dt); err != nil {
		return err
	}
	size := dt.SizeBytes()
	split(len(dst), func(low, high int) { decode(dst[low:high], src[low*size:high*size], dt) })
	return nil
}

// Encode writes the values of src into dst in the dtype's form. len(dst) must be len(src) times its size. Floats out of range
// become infinities (NaN in float8_e4m3, which has none); integers are rounded to even and saturate, NaN becoming 0; a bool is
// 1 for every value but 0.
func Encode(dst []byte, src []float64, dt harness.DType) error {
	if err := check(len(src), len(dst), dt); err != nil {
		return err
	}
	size := dt.SizeBytes()
	split(len(src), func(low, high int) { encode(dst[low*size:high*size], src[low:high], dt) })
	return nil
}

// Round returns v as the dtype would keep it.
func Round(v float64, dt harness.DType) float64 {
	var raw [8]byte
	var out [1]float64
	if dt.SizeBytes() == 0 {
		return math.NaN()
	}
	encode(raw[:dt.SizeBytes()], []float64{v}, dt)
	decode(out[:], raw[:dt.SizeBytes()], dt)
	return out[0]
}

func check(elements, bytes int, dt harness.DType) error {
	if dt.SizeBytes() == 0 {
		return fmt.Errorf("dtype %s has no elements", dt)
	}
	if elements*dt.SizeBytes() != bytes {
		return fmt.Errorf("%d elements of %s are %d bytes, got %d", elements, dt, elements*dt.SizeBytes(), bytes)
	}
	return nil
}

func split(n int, fn func(low, high int)) {
	workers := min(runtime.GOMAXPROCS(0), n/grain+1)
	if workers == 1 {
		fn(0, n)
		return
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { fn(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}

func decode(dst []float64, src []byte, dt harness.DType) {
	le := binary.LittleEndian
	switch dt {
	case harness.Float64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(src[8*i:]))
		}
	case harness.Float32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(le.Uint32(src[4*i:])))
		}
	case harness.Float16:
		table := halves()
		for i := range dst {
			dst[i] = table[le.Uint16(src[2*i:])]
		}
	case harness.BFloat16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(le.Uint16(src[2*i:])) << 16))
		}
	case harness.Float8E4M3, harness.Float8E5M2:
		f := formats[dt]
		for i := range dst {
			dst[i] = f.decode(uint64(src[i]))
		}
	default:
		decodeInts(dst, src, dt)
	}
}

func decodeInts(dst []float64, src []byte, dt harness.DType) {
	le := binary.LittleEndian
	for i := range dst {
		switch dt {
		case harness.Int64:
			dst[i] = float64(int64(le.Uint64(src[8*i:])))
		case harness.Int32:
			dst[i] = float64(int32(le.Uint32(src[4*i:])))
		case harness.Int8:
			dst[i] = float64(int8(src[i]))
		case harness.UInt8:
			dst[i] = float64(src[i])
		case harness.BoolType:
			dst[i] = 0
			if src[i] != 0 {
				dst[i] = 1
			}
		default:
			panic(fmt.Sprintf("codec: dtype %s was not checked", dt))
		}
	}
}

func encode(dst []byte, src []float64, dt harness.DType) {
	le := binary.LittleEndian
	switch dt {
	case harness.Float64:
		for i, v := range src {
			le.PutUint64(dst[8*i:], math.Float64bits(v))
		}
	case harness.Float32:
		for i, v := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(v)))
		}
	case harness.Float16, harness.BFloat16:
		f := formats[dt]
		for i, v := range src {
			le.PutUint16(dst[2*i:], uint16(f.encode(v)))
		}
	case harness.Float8E4M3, harness.Float8E5M2:
		f := formats[dt]
		for i, v := range src {
			dst[i] = byte(f.encode(v))
		}
	default:
		encodeInts(dst, src, dt)
	}
}

func encodeInts(dst []byte, src []float64, dt harness.DType) {
	le := binary.LittleEndian
	for i, v := range src {
		switch dt {
		case harness.Int64:
			le.PutUint64(dst[8*i:], uint64(saturate(v, math.MinInt64, math.MaxInt64)))
		case harness.Int32:
			le.PutUint32(dst[4*i:], uint32(saturate(v, math.MinInt32, math.MaxInt32)))
		case harness.Int8:
			dst[i] = byte(saturate(v, math.MinInt8, math.MaxInt8))
		case harness.UInt8:
			dst[i] = byte(saturate(v, 0, math.MaxUint8))
		case harness.BoolType:
			dst[i] = 0
			if v != 0 {
				dst[i] = 1
			}
		default:
			panic(fmt.Sprintf("codec: dtype %s was not checked", dt))
		}
	}
}

func saturate(v float64, low, high int64) int64 {
	v = math.RoundToEven(v)
	switch {
	case math.IsNaN(v):
		return 0
	case v <= float64(low):
		return low
	case v >= float64(high):
		return high
	}
	return int64(v)
}
