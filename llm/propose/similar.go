package propose

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"strings"
)

// Fingerprint is a source reduced to what makes it different: tokens without comments, white space and header, with its own
// names renamed in the order of their appearance. Two sources with the same Hash are the same program in other words.
type Fingerprint struct {
	Hash     string
	Skeleton string // the same with numbers made equal
	shingles map[uint64]int
	total    int
}

// shingleTokens is the length of the token runs that similarity counts: runs of five tell apart statements that share operators, and
// one changed token touches only five of them.
const shingleTokens = 5

// NewFingerprint reduces a source.
func NewFingerprint(source string) *Fingerprint {
	words := normalWords(source)
	f := &Fingerprint{Hash: digest(words, true), Skeleton: digest(words, false), shingles: map[uint64]int{}}
	for i := 0; i+shingleTokens <= len(words); i++ {
		f.shingles[runHash(words[i:i+shingleTokens])]++
		f.total++
	}
	return f
}

// runHash hashes a run of tokens in which names are numbered within the run, so that a new variable somewhere else changes nothing.
func runHash(run []word) uint64 {
	h, names := fnv.New64a(), map[string]int{}
	for _, w := range run {
		text := w.text
		if w.kind != 0 {
			if _, ok := names[text]; !ok {
				names[text] = len(names)
			}
			text = string(w.kind) + strconv.Itoa(names[text])
		}
		_, _ = h.Write([]byte(text)) // a hash does not fail
		_, _ = h.Write([]byte{0})
	}
	return h.Sum64()
}

// Similarity returns the share of token runs that two sources have in common, from 0 to 1 (the Dice coefficient of the multisets of
// their runs of five normalised tokens). Of two sources too short to have a run it is 1 when they are equal, else 0.
func (f *Fingerprint) Similarity(g *Fingerprint) float64 {
	if f.total == 0 || g.total == 0 {
		if f.Hash == g.Hash {
			return 1
		}
		return 0
	}
	shared := 0
	for s, n := range f.shingles {
		shared += min(n, g.shingles[s])
	}
	return 2 * float64(shared) / float64(f.total+g.total)
}

// Similarity returns the similarity of two sources: see Fingerprint.Similarity.
func Similarity(a, b string) float64 { return NewFingerprint(a).Similarity(NewFingerprint(b)) }

// digest hashes all tokens, names numbered in the order of their appearance, with or without the values of numbers.
func digest(words []word, values bool) string {
	h, names := sha256.New(), map[string]int{}
	for _, w := range words {
		text := w.text
		switch {
		case w.number && !values:
			text = "0"
		case w.kind != 0:
			if _, ok := names[text]; !ok {
				names[text] = len(names)
			}
			text = string(w.kind) + strconv.Itoa(names[text])
		}
		_, _ = h.Write([]byte(text)) // a hash does not fail
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// kept are names that keep their spelling: they carry meaning of their own. Names with a leading underscore (intrinsics,
// builtins) are kept too.
var kept = nameSet(`auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false template typename class constexpr
size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t half float2 float4 int2 int4 uint4 dim3 threadIdx blockIdx blockDim gridDim x y z w
expf exp exp2f fmaxf fmax fminf fmaf sqrtf rsqrtf logf fabsf powf tanhf sinf cosf max min malloc free memcpy memset abs pragma omp parallel simd reduction schedule
collapse num_threads include define ifdef ifndef endif elif undef`)

func nameSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// word is a normalised token. kind is 'v' for a name and 'M' for a macro that may be called anything, 0 for what keeps its spelling.
type word struct {
	text   string
	kind   byte
	number bool
}

// normalWords returns the normalised tokens of a source: without comments and line ends, numbers of the same value spelt equally.
func normalWords(source string) []word {
	tokens := lex(source).code()
	words := make([]word, 0, len(tokens))
	for _, t := range tokens {
		w := word{text: t.text}
		switch t.kind {
		case tokenNewline:
			continue
		case tokenNumber:
			w.text, w.number = number(t.text), true
		case tokenName:
			switch {
			case kept[t.text] || t.text[0] == '_':
			case t.text[0] >= 'A' && t.text[0] <= 'Z':
				w.kind = 'M'
			default:
				w.kind = 'v'
			}
		}
		words = append(words, w)
	}
	return words
}

// number spells equal numbers equally: 1.0f, 1.f and 1.0F are "1f"; 16u and 16 are "16".
func number(s string) string {
	low := strings.ToLower(s)
	if strings.HasPrefix(low, "0x") {
		return strings.TrimRight(low, "ul")
	}
	body := strings.TrimRight(low, "uflh")
	float := strings.ContainsAny(body, ".e")
	v, err := strconv.ParseFloat(body, 64)
	if err != nil {
		return low
	}
	out := strconv.FormatFloat(v, 'g', -1, 64)
	if float {
		out += "f"
	}
	return out
}

// Tried finds duplicates among the sources of a campaign.
type Tried struct {
	names  []string
	prints []*Fingerprint
}

// NearDuplicate is the similarity from which a draft counts as a near duplicate. Of the shipped structures of one task, different
// ideas lie below 0.6; a kernel with renamed variables, a changed constant or a moved line lies above 0.96.
const NearDuplicate = 0.96

// Match says what a draft repeats.
type Match struct {
	Name       string  // of the source that it is most similar to
	Similarity float64 // 1 for an exact one
	Exact      bool    // the same program in other words
	Numbers    bool    // the same but for numbers
}

// Duplicate reports whether a match is too close to be worth a compile.
func (m Match) Duplicate() bool { return m.Exact || m.Numbers || m.Similarity >= NearDuplicate }

// String says what is repeated, for the model.
func (m Match) String() string {
	switch {
	case m.Exact:
		return "it is the same program as " + m.Name + ", which was tried: change the way the work is done"
	case m.Numbers:
		return "it differs from " + m.Name + " only in numbers: declare a number that is worth changing as a parameter instead"
	default:
		return "it is nearly the same as " + m.Name + " (" + strconv.Itoa(int(100*m.Similarity)) + " % of it), which was tried: change the way the work is done"
	}
}

// Add remembers a source.
func (t *Tried) Add(name, source string) {
	t.names = append(t.names, name)
	t.prints = append(t.prints, NewFingerprint(source))
}

// Nearest returns the closest match of a source among those remembered; except names sources that do not count, such as the parent
// of a repair. An exact match of an excepted source counts all the same.
func (t *Tried) Nearest(source string, except ...string) Match {
	f, best := NewFingerprint(source), Match{}
	for i, g := range t.prints {
		excepted := false
		for _, e := range except {
			excepted = excepted || e == t.names[i]
		}
		m := Match{Name: t.names[i], Exact: f.Hash == g.Hash, Numbers: f.Hash != g.Hash && f.Skeleton == g.Skeleton, Similarity: f.Similarity(g)}
		if excepted && !m.Exact {
			continue
		}
		if m.Exact {
			m.Similarity = 1
			return m
		}
		if m.Similarity > best.Similarity || m.Numbers {
			best = m
		}
	}
	return best
}
