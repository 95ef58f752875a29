package configs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridgepoint/configs"
)

func TestLoadBatch(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, text string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), "friday.yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write(t, "order: parallel\ndeadline: 2026-12-01T07:00:00+01:00\nbudget: {wall: 10h, evaluations: 1000}\ncampaigns:\n  - {campaign: softmax-cpu, weight: 3}\n  - campaign: own.yaml\n    budget: {wall: 1h}\n")
	b, err := configs.LoadBatch(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.Name != "friday" || b.Order != "parallel" || b.Deadline.UTC().Hour() != 6 || time.Duration(b.Budget.Wall) != 10*time.Hour ||
		b.Campaigns[0].Weight != 3 || b.Campaigns[1].Weight != 1 || b.Campaigns[1].Campaign != filepath.Join(filepath.Dir(path), "own.yaml") {
		t.Errorf("got %+v", b)
	}
	for name, text := range map[string]string{
		"no campaigns": "name: x\n",
		"order":        "order: random\ncampaigns: [{campaign: a}]\n",
		"deadline":     "deadline: tomorrow\ncampaigns: [{campaign: a}]\n",
		"weight":       "campaigns: [{campaign: a, weight: -1}]\n",
		"unknown key":  "campaigns: [{campaign: a, wieght: 1}]\n",
		"no name":      "campaigns: [{weight: 1}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := configs.LoadBatch(write(t, text)); !errors.Is(err, configs.ErrConfig) || !strings.Contains(err.Error(), "friday.yaml") {
				t.Errorf("got %v; want ErrConfig with the file's name", err)
			}
		})
	}
}
