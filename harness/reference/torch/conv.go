package torch

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// window is how a kernel of kh × kw moves over an image.
type window struct {
	kh, kw              int
	stride, pad, dilate [2]int
}

func (w window) output(h, width int) (oh, ow int, err error) {
	oh = (h+2*w.pad[0]-w.dilate[0]*(w.kh-1)-1)/max(w.stride[0], 1) + 1
	ow = (width+2*w.pad[1]-w.dilate[1]*(w.kw-1)-1)/max(w.stride[1], 1) + 1
	if w.stride[0] < 1 || w.stride[1] < 1 || w.dilate[0] < 1 || w.dilate[1] < 1 || w.pad[0] < 0 || w.pad[1] < 0 || oh < 1 || ow < 1 {
		return 0, 0, fmt.Errorf("a window of %d×%d with stride %v, padding %v, dilation %v does not fit an image of %d×%d", w.kh, w.kw, w.stride, w.pad, w.dilate, h, width)
	}
	return oh, ow, nil
}

// conv2d is torch.nn.functional.conv2d over [n, c, h, w] or [c, h, w].
func conv2d(c *call) starlark.Value {
	x, k := c.array("input"), c.array("weight")
	batched := len(x.Shape) == 4
	if len(x.Shape) == 3 {
		x = x.view(append([]int{1}, x.Shape...))
	}
	if len(x.Shape) != 4 || len(k.Shape) != 4 {
		c.fail("want input of 3 or 4 dims and weight of 4, got shapes %v and %v", x.Shape, k.Shape)
		return nil
	}
	w := window{kh: k.Shape[2], kw: k.Shape[3], stride: c.twice("stride", 1), dilate: c.twice("dilation", 1)}
	switch pad := c.text("padding", ""); pad {
	case "":
		w.pad = c.twice("padding", 0)
	case "valid":
	case "same":
		w.pad = [2]int{w.dilate[0] * (w.kh - 1) / 2, w.dilate[1] * (w.kw - 1) / 2}
		if w.stride != [2]int{1, 1} || w.dilate[0]*(w.kh-1)%2 != 0 || w.dilate[1]*(w.kw-1)%2 != 0 {
			c.fail("padding same wants stride 1 and windows of odd extent")
		}
	default:
		c.fail("padding: %q is not known; write an int, same or valid", pad)
	}
	out, err := convolve(x, k, w, c.integer("groups", 1))
	if err == nil && c.has("bias") {
		b := c.array("bias")
		out, err = binary(out, b.view([]int{len(b.Data), 1, 1}), add)
	}
	if err == nil && !batched {
		out = out.view(out.Shape[1:])
	}
	return c.give(out, err)
}

func convolve(x, k *Array, w window, groups int) (*Array, error) {
	n, ci, h, width := x.Shape[0], x.Shape[1], x.Shape[2], x.Shape[3]
	co, per := k.Shape[0], k.Shape[1]
	if groups < 1 || ci != per*groups || co%groups != 0 {
		return nil, fmt.Errorf("%d input and %d output channels in %d groups do not fit a weight of shape %v", ci, co, groups, k.Shape)
	}
	oh, ow, err := w.output(h, width)
	if err != nil {
		return nil, err
	}
	out, err := alloc([]int{n, co, oh, ow}, kindFloat)
	if err != nil {
		return nil, err
	}
	parallel(n*co*oh, ow*per*w.kh*w.kw, func(low, high int) {
		for r := low; r < high; r++ {
			image, o, y := r/(co*oh), r/oh%co, r%oh
			dst := out.Data[r*ow : (r+1)*ow]
			for c := range per {
				channel := o/(co/groups)*per + c
				for ky := range w.kh {
					iy := y*w.stride[0] + ky*w.dilate[0] - w.pad[0]
					if iy < 0 || iy >= h {
						continue
					}
					src := x.Data[((image*ci+channel)*h+iy)*width:][:width]
					taps := k.Data[((o*per+c)*w.kh+ky)*w.kw:][:w.kw]
					w.accumulate(dst, src, taps)
				}
			}
		}
	})
	return out, nil
}

// accumulate adds one row of the window's taps over one row of the image.
func (w window) accumulate(dst, src, taps []float64) {
	for kx, tap := range taps {
		shift := kx*w.dilate[1] - w.pad[1]
		low := 0
		if shift < 0 {
			low = (-shift + w.stride[1] - 1) / w.stride[1]
		}
		high := min(len(dst), (len(src)-1-shift)/w.stride[1]+1)
		if len(src)-1-shift < 0 {
			high = 0
		}
		if w.stride[1] == 1 && low < high {
			from := src[low+shift : high+shift]
			to := dst[low:high]
			for i := range to {
				to[i] += tap * from[i]
			}
			continue
		}
		for i := low; i < high; i++ {
			dst[i] += tap * src[i*w.stride[1]+shift]
		}
	}
}

// pool folds windows; average divides by the window's area, padding counted, as torch does by default.
func pool(f folder, average bool) func(*call) starlark.Value {
	return func(c *call) starlark.Value {
		x := c.array("input")
		if len(x.Shape) != 3 && len(x.Shape) != 4 {
			c.fail("want 3 or 4 dims, got %d", len(x.Shape))
			return nil
		}
		size := c.twice("kernel_size", 1)
		w := window{kh: size[0], kw: size[1], pad: c.twice("padding", 0), dilate: [2]int{1, 1}}
		if w.pad[0] > w.kh/2 || w.pad[1] > w.kw/2 {
			c.fail("a padding of %v is over half of the window of %d×%d", w.pad, w.kh, w.kw)
			return nil
		}
		w.stride = size
		if c.has("stride") {
			w.stride = c.twice("stride", 1)
		}
		rank := len(x.Shape)
		h, width := x.Shape[rank-2], x.Shape[rank-1]
		oh, ow, err := w.output(h, width)
		if err != nil {
			return c.give(nil, err)
		}
		shape := append([]int{}, x.Shape...)
		shape[rank-2], shape[rank-1] = oh, ow
		out, err := alloc(shape, x.kind)
		if err != nil || len(out.Data) == 0 {
			return c.give(out, err)
		}
		area := 1.0
		if average {
			area = float64(w.kh * w.kw)
			out.kind = kindFloat
		}
		parallel(len(out.Data)/ow, ow*w.kh*w.kw, func(low, high int) {
			var buf []float64
			for r := low; r < high; r++ {
				plane := x.Data[r/oh*h*width:][:h*width]
				for i := range ow {
					buf = w.collect(buf[:0], plane, h, width, r%oh, i)
					v := math.Inf(-1)
					if len(buf) > 0 {
						v = f.fn(buf) / area
					}
					out.Data[r*ow+i] = v
				}
			}
		})
		return out
	}
}

// collect gathers the elements of one window that lie within the image.
func (w window) collect(buf, plane []float64, h, width, oy, ox int) []float64 {
	for ky := range w.kh {
		for kx := range w.kw {
			y, x := oy*w.stride[0]+ky-w.pad[0], ox*w.stride[1]+kx-w.pad[1]
			if y >= 0 && y < h && x >= 0 && x < width {
				buf = append(buf, plane[y*width+x])
			}
		}
	}
	return buf
}

// causal hides what comes after the diagonal; masked adds a mask, or hides where a bool one is false.
func causal(s *Array) (*Array, error) {
	out, err := alloc(s.Shape, kindFloat)
	if err != nil {
		return nil, err
	}
	rows, cols := s.Shape[len(s.Shape)-2], s.Shape[len(s.Shape)-1]
	for i, v := range s.Data {
		if i%cols > i/cols%rows {
			v = math.Inf(-1)
		}
		out.Data[i] = v
	}
	return out, nil
}

func masked(s, m *Array) (*Array, error) {
	if m.kind == kindBool {
		return choose(m, s, scalar(math.Inf(-1), kindFloat))
	}
	return binary(s, m, add)
}
