package main

import (
	"fmt"
	"runtime/debug"
)

// versionCmd prints what the binary was built from.
type versionCmd struct{}

// Run prints one line: version, commit, Go version, platform.
func (versionCmd) Run(env environment) error {
	_, err := fmt.Fprintln(env.stdout, buildVersion())
	return err
}

// buildVersion is the version stamped by the Go toolchain: module version, commit, whether the tree was modified.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "ridgepoint (no build info)"
	}
	commit, modified := "unknown commit", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				modified = "+modified"
			}
		}
	}
	return fmt.Sprintf("ridgepoint %s %s%s %s", info.Main.Version, commit, modified, info.GoVersion)
}
