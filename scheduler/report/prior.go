package report

import (
	"fmt"
	"strings"

	"ridgepoint/scheduler"
)

// Prior is one place whose earlier measurements of a structure were offered to its search.
type Prior struct {
	Structure string   `json:"structure"`
	Source    string   `json:"source"`
	Campaigns []string `json:"campaigns,omitempty"`
	File      string   `json:"file,omitempty"`
	Measured  int      `json:"measured"`
	Failed    int      `json:"failed"`
	Used      bool     `json:"used"`
	Ignored   string   `json:"ignored,omitempty"` // why not
}

// prior takes in what a structure's search was offered.
func (b *builder) prior(p *scheduler.Prior) {
	for i := range p.Sources {
		s := &p.Sources[i]
		row := Prior{Structure: b.name(p.Structure), Source: s.Name, Campaigns: s.Campaigns, File: s.File, Used: s.Used}
		row.Measured, row.Failed = s.Measured()
		switch {
		case s.Used:
		case p.Ignored != "":
			row.Ignored = p.Ignored
		default:
			row.Ignored = "it measured no configuration of this space"
		}
		b.out.Priors = append(b.out.Priors, row)
	}
}

// From says where the measurements stand: a file, or campaigns.
func (p *Prior) From() string {
	if p.File != "" {
		return p.File
	}
	return strings.Join(p.Campaigns, ", ")
}

// priors tells what earlier measurements guided the search. None of them counts as a result of this campaign.
func (r *Report) priors(p *printer) {
	if len(r.Priors) == 0 {
		return
	}
	p.line("Earlier measurements that guided the search (a prior, never a score)")
	t := p.table()
	for i := range r.Priors {
		q := &r.Priors[i]
		word := "used"
		if !q.Used {
			word = "not used: " + q.Ignored
		}
		t.row("", q.Structure, q.Source, fmt.Sprintf("%d measured, %d failed", q.Measured, q.Failed), q.From(), word)
	}
	t.end()
	p.line("")
}
