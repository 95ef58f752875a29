package codeobject

import (
	"encoding/binary"
	"errors"
)

// errShort and errForm say what is wrong with a piece of MessagePack.
var (
	errShort = errors.New("it ends too early")
	errForm  = errors.New("it holds a form that metadata never has")
)

// maxDepth bounds nesting: metadata has four levels.
const maxDepth = 16

// unpack reads one value of MessagePack (msgpack.org): nil, bool, int64, string, []any or map[string]any.
func unpack(data []byte) (any, error) {
	r := reader{data: data}
	return r.value(0)
}

type reader struct{ data []byte }

func (r *reader) take(n int) ([]byte, error) {
	if n < 0 || n > len(r.data) {
		return nil, errShort
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out, nil
}

// unsigned reads n bytes, big end first.
func (r *reader) unsigned(n int) (uint64, error) {
	b, err := r.take(n)
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-n:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

func (r *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errForm
	}
	head, err := r.take(1)
	if err != nil {
		return nil, err
	}
	switch b := head[0]; {
	case b < 0x80:
		return int64(b), nil
	case b >= 0xe0:
		return int64(int8(b)), nil
	case b < 0x90:
		return r.mapping(int(b&0x0f), depth)
	case b < 0xa0:
		return r.list(int(b&0x0f), depth)
	case b < 0xc0:
		return r.text(int(b & 0x1f))
	case b == 0xc0:
		return nil, nil
	case b == 0xc2, b == 0xc3:
		return b == 0xc3, nil
	case b >= 0xcc && b <= 0xcf:
		v, err := r.unsigned(1 << (b - 0xcc))
		return int64(v), err
	case b >= 0xd0 && b <= 0xd3:
		n := 1 << (b - 0xd0)
		v, err := r.unsigned(n)
		shift := 64 - 8*n
		return int64(v<<shift) >> shift, err
	case b >= 0xd9 && b <= 0xdb:
		return r.counted(1<<(b-0xd9), depth, func(n, _ int) (any, error) { return r.text(n) })
	case b == 0xdc, b == 0xdd:
		return r.counted(2<<(b-0xdc), depth, r.list)
	case b == 0xde, b == 0xdf:
		return r.counted(2<<(b-0xde), depth, r.mapping)
	default:
		return nil, errForm
	}
}

// counted reads a length of size bytes and then what has that length.
func (r *reader) counted(size, depth int, read func(n, depth int) (any, error)) (any, error) {
	n, err := r.unsigned(size)
	if err != nil {
		return nil, err
	}
	if n > uint64(len(r.data)) {
		return nil, errShort
	}
	return read(int(n), depth)
}

func (r *reader) text(n int) (any, error) {
	b, err := r.take(n)
	return string(b), err
}

func (r *reader) list(n, depth int) (any, error) {
	if n > len(r.data) {
		return nil, errShort
	}
	out := make([]any, 0, n)
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (r *reader) mapping(n, depth int) (any, error) {
	if n > len(r.data) {
		return nil, errShort
	}
	out := make(map[string]any, n)
	for range n {
		key, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errForm
		}
		if out[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
