package device

import (
	"fmt"
	"unsafe"

	"ridgepoint/harness"
)

// TensorMap is an encoded descriptor of the bulk tensor copy engine, 128 opaque bytes.
type TensorMap [16]uint64

// TensorMapSpec declares a tensor map. Shape and Box list elements per dimension, innermost last, as a task writes shapes.
type TensorMapSpec struct {
	Base    Ptr
	DType   harness.DType
	Shape   []int64
	Box     []int64
	Swizzle string // "", 32B, 64B or 128B
}

// tensorTypes are CUtensorMapDataType's numbers; float8 and the other one-byte types travel as uint8.
var tensorTypes = map[harness.DType]uintptr{
	harness.UInt8: 0, harness.Int8: 0, harness.BoolType: 0, harness.Float8E4M3: 0, harness.Float8E5M2: 0, harness.Int32: 3, harness.Int64: 5,
	harness.Float16: 6, harness.Float32: 7, harness.Float64: 8, harness.BFloat16: 9,
}

// EncodeTensorMap encodes a contiguous row-major tensor's map (cuTensorMapEncodeTiled): no interleave, 128-byte L2
// promotion, zeros outside the tensor.
func (s *Session) EncodeTensorMap(spec TensorMapSpec) (TensorMap, error) {
	rank := len(spec.Shape)
	typ, ok := tensorTypes[spec.DType]
	if !ok || rank < 1 || rank > 5 || len(spec.Box) != rank {
		return TensorMap{}, fmt.Errorf("encode a tensor map: dtype %v, rank %d with a box of rank %d: want a known dtype and equal ranks of 1 to 5", spec.DType, rank, len(spec.Box))
	}
	swizzle, ok := map[string]uintptr{"": 0, "none": 0, "32B": 1, "64B": 2, "128B": 3}[spec.Swizzle]
	if !ok {
		return TensorMap{}, fmt.Errorf("encode a tensor map: swizzle %q is not known; want 32B, 64B or 128B", spec.Swizzle)
	}
	var dims, strides [5]uint64
	var box, steps [5]uint32
	stride := uint64(spec.DType.SizeBytes())
	for i := range rank { // the driver counts from the innermost dimension
		dims[i], box[i], steps[i] = uint64(spec.Shape[rank-1-i]), uint32(spec.Box[rank-1-i]), 1
		stride *= dims[i]
		strides[i] = stride
	}
	const promotion128B = 2
	m := new(TensorMap)
	err := s.driver.call(fnTensorMap, uintptr(unsafe.Pointer(m)), typ, uintptr(rank), uintptr(spec.Base), uintptr(unsafe.Pointer(&dims[0])),
		uintptr(unsafe.Pointer(&strides[0])), uintptr(unsafe.Pointer(&box[0])), uintptr(unsafe.Pointer(&steps[0])), 0, swizzle, promotion128B, 0)
	if err != nil {
		return TensorMap{}, fmt.Errorf("encode a tensor map of shape %v, box %v: %w", spec.Shape, spec.Box, err)
	}
	return *m, nil
}
