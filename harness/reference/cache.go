package reference

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"hash/crc32"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"time"

	"ridgepoint/harness"
)

// Cache keeps expected values on disk. Entries are found by content, checked when read and replaced whole; the least recently
// used go when the cache is full. Several processes may share a folder. A cache that cannot be read or written is never an
// error: the values are computed again.
type Cache struct {
	dir      string
	maxBytes int64
}

// DefaultCacheBytes is what a cache holds at most unless the person says otherwise.
const DefaultCacheBytes = 2 << 30

// NewCache returns a cache in a folder, which it makes.
func NewCache(dir string, maxBytes int64) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache of expected values: %w", err)
	}
	return &Cache{dir: dir, maxBytes: maxBytes}, nil
}

const (
	cacheMagic  = "RPEXPECT1\n"
	cacheSuffix = ".expected"
	// readBytesPerSecond is what reading an entry back costs on a plain disk: values that are computed faster are not kept.
	readBytesPerSecond = 500e6
)

// entry is one output of a cache file's header; its values follow the header as little-endian float64.
type entry struct {
	Name     string `json:"name"`
	Elements int    `json:"elements"`
}

// cacheVersion is part of every key: change it when operators change their results.
const cacheVersion = 1

// key is the content address of an evaluation: everything that its result depends on.
func (r *Reference) key(size harness.Size, in Inputs) (string, error) {
	h := sha256.New()
	b, err := json.Marshal(struct {
		Version   int
		Reference harness.Reference
		Tensors   []harness.Tensor
		Scalars   []harness.Scalar
		Size      harness.Size
		Inputs    string
	}{cacheVersion, r.task.Reference, r.task.Tensors, r.task.Scalars, size, in.Key})
	if err != nil {
		return "", fmt.Errorf("key of expected values: %w", err)
	}
	h.Write(b)
	if in.Key == "" {
		for _, name := range slices.Sorted(maps.Keys(in.Values)) {
			fmt.Fprintf(h, "\x00%s\x00", name)
			hashFloats(h, in.Values[name])
		}
		for _, name := range slices.Sorted(maps.Keys(in.Raw)) {
			fmt.Fprintf(h, "\x01%s\x00", name)
			h.Write(in.Raw[name])
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashFloats hashes values through a small buffer: inputs can be gigabytes.
func hashFloats(h hash.Hash, v []float64) {
	var buf [8 << 10]byte
	for len(v) > 0 {
		n := min(len(v), len(buf)/8)
		for i, x := range v[:n] {
			binary.LittleEndian.PutUint64(buf[8*i:], math.Float64bits(x))
		}
		h.Write(buf[:8*n])
		v = v[n:]
	}
}

func floatBytes(v []float64) []byte {
	out := make([]byte, 8*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint64(out[8*i:], math.Float64bits(x))
	}
	return out
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// get returns the outputs under a key when they are there, whole, and of the wanted lengths.
func (c *Cache) get(key string, lengths map[string]int64) (Outputs, bool) {
	file := filepath.Join(c.dir, key+cacheSuffix)
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}
	out, ok := decodeEntry(b)
	if !ok || len(out) != len(lengths) {
		_ = os.Remove(file) // damaged: the next run writes it again
		return nil, false
	}
	for name, n := range lengths {
		if int64(len(out[name])) != n {
			return nil, false
		}
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // the use counts for eviction; a folder that may only be read stays as it is
	return out, true
}

// decodeEntry reads a cache file: magic, length and JSON of the header, values, CRC of all that.
func decodeEntry(b []byte) (Outputs, bool) {
	if len(b) < len(cacheMagic)+8 || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil, false
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, false
	}
	rest := body[len(cacheMagic):]
	n := int(binary.LittleEndian.Uint32(rest))
	rest = rest[4:]
	if n > len(rest) {
		return nil, false
	}
	var header []entry
	if json.Unmarshal(rest[:n], &header) != nil {
		return nil, false
	}
	rest = rest[n:]
	out := Outputs{}
	for _, e := range header {
		if e.Elements < 0 || e.Elements > len(rest)/8 {
			return nil, false
		}
		v := make([]float64, e.Elements)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(rest[8*i:]))
		}
		out[e.Name] = v
		rest = rest[8*e.Elements:]
	}
	return out, len(rest) == 0
}

func encodeEntry(out Outputs) []byte {
	var header []entry
	for _, name := range slices.Sorted(maps.Keys(out)) {
		header = append(header, entry{name, len(out[name])})
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(fmt.Sprintf("reference: names and counts cannot be written as JSON: %v", err)) // they always can
	}
	var b bytes.Buffer
	b.WriteString(cacheMagic)
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
	b.Write(text)
	for _, e := range header {
		b.Write(floatBytes(out[e.Name]))
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.Checksum(b.Bytes(), castagnoli))
}

// quick reports whether outputs took less time to compute than they would take to read back.
func quick(out Outputs, took time.Duration) bool {
	size := 0
	for _, v := range out {
		size += 8 * len(v)
	}
	return took.Seconds() < float64(size)/readBytesPerSecond
}

// put keeps outputs that took longer to compute than they take to read back.
func (c *Cache) put(key string, out Outputs, took time.Duration) {
	size := int64(0)
	for _, v := range out {
		size += 8 * int64(len(v))
	}
	if quick(out, took) || size > c.maxBytes/4 {
		return
	}
	tmp, err := os.CreateTemp(c.dir, "writing-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(encodeEntry(out))
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(c.dir, key+cacheSuffix))
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // a full disk: nothing is kept
		return
	}
	c.evict()
}

// evict removes the least recently used entries until the rest fits, and what an interrupted writer left an hour ago.
func (c *Cache) evict() {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil {
			continue
		}
		if filepath.Ext(e.Name()) != cacheSuffix {
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.Remove(filepath.Join(c.dir, e.Name())) // a leftover of a killed process
			}
			continue
		}
		files = append(files, info)
		total += info.Size()
	}
	sort.Slice(files, func(i, j int) bool { return files[i].ModTime().Before(files[j].ModTime()) })
	for _, f := range files {
		if total <= c.maxBytes {
			return
		}
		if os.Remove(filepath.Join(c.dir, f.Name())) == nil {
			total -= f.Size()
		}
	}
}
