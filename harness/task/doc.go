// Package task loads task files (DESIGN.md, section 4) and structure files (section 5) into the nouns of package harness,
// and turns a structure with a configuration into concrete numbers: launches, macros, build options. Every fault of a file
// is one *Error with file, line, column, reason and remedy. It compiles and runs nothing.
//
// A task file needs task_name, problem_shape, reference and a target. All keys, with their defaults:
//
//	task_name: softmax_2d
//	description: ""
//	problem_shape: {rows: 8192, cols: 512, dtype: float32}   # the dims in order, and the dtype of what states none
//	reference: torch.softmax(input, dim=-1)                  # or a def over the inputs, or {command: [python3, ref.py]}: run in
//	                                                         # the task's folder as `python3 ref.py FOLDER`; FOLDER holds NAME.npy
//	                                                         # for every input and size.json, and takes NAME.npy of every output
//	compile: {target: cuda, ...}                             # keys of one target; without `target` of all
//	eval:
//	  atol: 1e-5                  # defaults: those of torch.testing.assert_close for the outputs' dtype
//	  rtol: 1.3e-6
//	  warmup_iters: 10            # at least 10 on cuda and hip
//	  timed_iters: 50
//	  metric: gflops              # gflops, gbps, time
//	  protocol: {runs: 10, discard: 2, statistic: median, flush: true, rewrite: true}   # a leaderboard's; default: ours
//	  exclude_distributions: {spikes: "why the mathematics rules them out"}
//	  deterministic: false        # true: the same inputs twice must give the same bits
//	agent: {max_iterations: 8, temperature: 0.2, feedback_schema: structured_v1}        # or plain
//	tensors:                      # default: input (role in) and output (role out), both [dims in order]
//	  input: {shape: [rows, cols], dtype: float32, role: in, init: normal, strides: [cols, 1], alignment: 256}   # init: normal, uniform, positive
//	scalars: {alpha: 1.5, n: {value: 3, dtype: int32}}
//	sizes: [{rows: 128, cols: 128}]   # default: problem_shape
//	vary: {rows: [1, 600]}        # or none; default: 0.5 to 2 times each dim of the scored sizes
//	work: {flops: "5*rows*cols", bytes: "8*rows*cols"}
//	rules: {forbid: [cublas], max_size_regression: 0.30, size_branching: verify, writable_globals: verify}     # or allow, forbid
//	targets:
//	  cuda:
//	    arch: sm_90               # always written; cpu's native is resolved when the file is loaded
//	    baseline: naive.cu
//	    sizes: [...]              # instead of the task's
//	    maxrregcount: 128         # default: min(128, 65536/threads); a parameter with `option: maxrregcount` may choose
//	    fast_math: false          # or true, or search: a parameter with `option: fast_math` may choose
//	    std: c++17
//	    flags: [--restrict]       # of a fixed list: flags.go
//	    include_dirs: [headers]   # hashed by content
//	    search_flags: {level: [-O2, -O3]}   # a parameter with `option: level` may choose
//	reward: {kind: mean_std_fail, std_weight: 0.1, fail_weight: 0.05, per: ratio_to_baseline}                  # or literal, or expr with expr: ...
//	default_launch: {kernel: softmax, grid: [rows], block: [256], args: [input, output, rows, cols]}
//	structures: [structures/*.cu]
//
// A structure file's header holds direction, launch, workspace, tensor_maps, requires, params, constraints and default. A
// parameter is a list of values, a range {min, max, step} or {min, max, log: true} that doubles, or {type: bool}; `when` makes
// it conditional, `option` a build option instead of a macro.
package task
