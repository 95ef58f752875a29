package command

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// confine puts a command into the sandbox that the configuration asks for, and reports whether it runs in one.
func (c *Client) confine(cmd *exec.Cmd, folder string) (bool, error) {
	if c.config.Sandbox == sandboxOff || (c.hooks.SandboxFunc == nil && c.config.Sandbox != sandboxFull) {
		return false, nil
	}
	if c.hooks.SandboxFunc == nil {
		return false, fmt.Errorf("model %s: sandbox: full is wanted, and nothing here makes one", c.config.Name)
	}
	if err := interpret(cmd); err != nil {
		return false, fmt.Errorf("model %s: %w", c.config.Name, err)
	}
	files := append([]string{}, c.config.Files...)
	program := c.config.Command[0]
	if real, err := filepath.EvalSymlinks(program); err == nil && real != program {
		files = append(files, real)
	}
	confined, err := c.hooks.SandboxFunc(cmd, Confinement{Model: c.config.Name, Must: c.config.Sandbox == sandboxFull, Folder: folder, Network: c.config.Network, Files: append(files, program)})
	if err != nil {
		return false, fmt.Errorf("sandbox of model %s: %w", c.config.Name, err)
	}
	return confined, nil
}

// interpret makes a script's interpreter the program: a sandbox executes an open file, and a script that is one cannot be opened again.
func interpret(cmd *exec.Cmd) error {
	f, err := os.Open(cmd.Path)
	if err != nil {
		return nil // a program that may be executed and not read is no script
	}
	defer func() { _ = f.Close() }() // opened for reading only
	head := make([]byte, 256)
	n, err := f.Read(head)
	line, found := bytes.CutPrefix(head[:max(n, 0)], []byte("#!"))
	if err != nil || !found {
		return nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.SplitN(strings.TrimSpace(string(line)), " ", 2)
	if !filepath.IsAbs(words[0]) {
		return fmt.Errorf("%s begins with %q: after #! an absolute path must stand", cmd.Path, "#!"+string(line))
	}
	cmd.Args = append(append(words, cmd.Path), cmd.Args[1:]...)
	cmd.Path = words[0]
	return nil
}

// advice says what a program that failed in a sandbox may lack.
func (c *Client) advice(confined bool) string {
	if !confined {
		return ""
	}
	seen := "the system's folders"
	if len(c.config.Files) > 0 {
		seen += " and " + strings.Join(c.config.Files, ", ")
	}
	network := "without the network (network: true gives it)"
	if c.config.Network {
		network = "with the network"
	}
	return fmt.Sprintf(" It ran in a sandbox, %s, and read nothing but %s (files: [PATH] shows more; sandbox: off does without)", network, seen)
}
