package optimizer

// Family is the histories of the structures that one campaign searches. What one of them learned, a model of another may read:
// variants of a kernel that share parameters mostly agree on which values are good. It holds one clock, so that what was
// told has one order over all of them.
type Family struct {
	members []*History
	clock   uint64
}

// Join makes a history a member of a family; it leaves the one it was in. It must not have been told anything yet.
func (h *History) Join(f *Family) {
	if len(h.Trials) > 0 {
		panic("optimizer: a history joined a family after it was told something")
	}
	h.family, h.member = f, len(f.members)
	f.members = append(f.members, h)
}

// Family returns the histories of the campaign's structures in the order in which they joined, this one among them, and its
// place. The caller must not change them.
func (h *History) Family() (members []*History, place int) { return h.family.members, h.member }
