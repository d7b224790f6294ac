package api

// Options are what an operator may turn on, in either role.
type Options struct {
	// KeepPlumbing records the spans of an app's HTTP and database instrumentation, too, which are
	// dropped otherwise.
	KeepPlumbing bool
}

// Switch is the flag that turns one of the Options on, for both roles and `up`.
type Switch struct {
	Flag   string // its name, also of the variable and in the configuration file
	Usage  string
	Option func(*Options) *bool

	// Off and On are the flag's values, the first of which is its default. Without them the flag is
	// given or not.
	Off, On string
}

// Switches are the flags of all Options, in the order of the help.
var Switches = []Switch{
	{
		Flag: "otlp-keep",
		Usage: "`which` spans of OpenTelemetry are kept (genai: not those of HTTP, database and similar " +
			"instrumentation that say nothing about a model call)",
		Option: func(o *Options) *bool { return &o.KeepPlumbing },
		Off:    "genai",
		On:     "all",
	},
}
