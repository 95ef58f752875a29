package reference

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ridgepoint/harness"
	"ridgepoint/harness/codec"
)

// The .npy format: numpy/lib/format.py, versions 1.0 to 3.0.
const npyMagic = "\x93NUMPY"

// npyTypes maps dtypes to numpy's; bfloat16 and the 8-bit floats, which numpy lacks, travel as float32.
var npyTypes = map[harness.DType]string{
	harness.Float64: "<f8", harness.Float32: "<f4", harness.Float16: "<f2", harness.BFloat16: "<f4", harness.Float8E4M3: "<f4", harness.Float8E5M2: "<f4",
	harness.Int64: "<i8", harness.Int32: "<i4", harness.Int8: "|i1", harness.UInt8: "|u1", harness.BoolType: "|b1",
}

var npyDTypes = map[string]harness.DType{"f8": harness.Float64, "f4": harness.Float32, "f2": harness.Float16, "i8": harness.Int64, "i4": harness.Int32,
	"i1": harness.Int8, "u1": harness.UInt8, "b1": harness.BoolType}

// EncodeNpy writes values in row-major order as an array of the shape and dtype.
func EncodeNpy(shape []int64, values []float64, dt harness.DType) ([]byte, error) {
	descr, ok := npyTypes[dt]
	if !ok {
		return nil, fmt.Errorf("dtype %s has no form in .npy", dt)
	}
	kept := npyDTypes[descr[1:]]
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d,", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	pad := 64 - (len(npyMagic)+4+len(header)+1)%64
	header += strings.Repeat(" ", pad%64) + "\n"
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	b.WriteString(header)
	raw := make([]byte, len(values)*kept.SizeBytes())
	if err := codec.Encode(raw, values, kept); err != nil {
		return nil, err
	}
	b.Write(raw)
	return b.Bytes(), nil
}

var (
	npyDescr = regexp.MustCompile(`'descr'\s*:\s*'([<|=]?)([a-z][0-9]+)'`)
	npyOrder = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	npyShape = regexp.MustCompile(`'shape'\s*:\s*\(([0-9,\sL]*)\)`)
)

// DecodeNpy reads an array of at most maxElements elements and returns its shape and its values in row-major order.
func DecodeNpy(b []byte, maxElements int64) (shape []int64, values []float64, err error) {
	header, data, err := npyParts(b)
	if err != nil {
		return nil, nil, err
	}
	descr, order, dims := npyDescr.FindStringSubmatch(header), npyOrder.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || order == nil || dims == nil {
		return nil, nil, fmt.Errorf("the .npy header is %.120q: want descr (little-endian numbers), fortran_order and shape", header)
	}
	dt, ok := npyDTypes[descr[2]]
	if !ok {
		return nil, nil, fmt.Errorf("the .npy dtype %q cannot be read; write float64", descr[2])
	}
	elements := int64(1)
	for _, word := range strings.FieldsFunc(dims[1], func(r rune) bool { return r == ',' || r == ' ' || r == 'L' }) {
		d, err := strconv.ParseInt(word, 10, 64)
		if err != nil || d < 0 || d > maxElements || d > 0 && elements > maxElements/d {
			return nil, nil, fmt.Errorf("the .npy shape (%s) is over %d elements", dims[1], maxElements)
		}
		shape = append(shape, d)
		elements *= d
	}
	if int64(len(data)) != elements*int64(dt.SizeBytes()) {
		return nil, nil, fmt.Errorf("the .npy data is %d bytes, the shape %v of %s wants %d", len(data), shape, dt, elements*int64(dt.SizeBytes()))
	}
	values = make([]float64, elements)
	if err := codec.Decode(values, data, dt); err != nil {
		return nil, nil, err
	}
	if order[1] == "True" {
		values = fromColumns(shape, values)
	}
	return shape, values, nil
}

func npyParts(b []byte) (header string, data []byte, err error) {
	if len(b) < 12 || string(b[:6]) != npyMagic {
		return "", nil, fmt.Errorf("is no .npy file")
	}
	var n, start int
	switch b[6] {
	case 1:
		n, start = int(binary.LittleEndian.Uint16(b[8:])), 10
	case 2, 3:
		n, start = int(binary.LittleEndian.Uint32(b[8:])), 12
	default:
		return "", nil, fmt.Errorf("is of .npy version %d; want 1 to 3", b[6])
	}
	if n > len(b)-start {
		return "", nil, fmt.Errorf("the .npy header is cut off")
	}
	return string(b[start : start+n]), b[start+n:], nil
}

// fromColumns reorders column-major values to row-major ones.
func fromColumns(shape []int64, v []float64) []float64 {
	out := make([]float64, len(v))
	steps := make([]int64, len(shape))
	step := int64(1)
	for d := range shape {
		steps[d] = step
		step *= shape[d]
	}
	index := make([]int64, len(shape))
	at := int64(0)
	for i := range out {
		out[i] = v[at]
		for d := len(index) - 1; d >= 0; d-- {
			index[d]++
			at += steps[d]
			if index[d] < shape[d] {
				break
			}
			at -= steps[d] * shape[d]
			index[d] = 0
		}
	}
	return out
}
