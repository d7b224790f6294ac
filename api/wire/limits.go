package wire

// Limits of what is accepted. Beyond them a request gets a 422 that names the field, or a
// 413 for the body. Lengths are in characters (Runes) or bytes, as the names say.
const (
	NameRunesMax          = 512        // tag, label, template name, score name, group id
	MetadataKeyRunesMax   = 1024       // one metadata key
	MetadataValueBytesMax = 64 << 10   // one metadata value
	TagsMax               = 256        // tags of one request or template
	MetadataKeysMax       = 256        // metadata keys of one write
	MetadataBytesMax      = 256 << 10  // keys and values of the metadata of one write
	SidecarBytesMax       = 255        // name of a sidecar
	PriceMax              = 1_000_000  // dollars of one call, if the caller gives its price
	TokensMax             = 1e12       // of one call, in or out, if the caller gives them
	CallNameRunesMax      = 256        // session_id, user_id and environment of a call
	FirstTokenMax         = 86_400_000 // milliseconds of time_to_first_token_ms: a day
	FunctionNameRunesMax  = 1024       // function_name
	ObjectMembersMax      = 1000       // fields of a body, known and unknown
	JSONDepthMax          = 512        // nesting of a body
	BodyBytesMax          = 32 << 20   // a body, as sent and after decompression
	CommitMessageRunesMax = 512        // commit message of a template version
	ExternalIDsMax        = 32         // ids of one template in other systems
	SourceRunesMax        = 128        // the name of another system

	BatchEventsMax = 1000    // events of one POST /sync/events
	BatchBytesMax  = 4 << 20 // its bytes before compression; one larger event travels alone
	PageItemsMax   = 1000    // items of one page of a search or a list
	PageOffsetMax  = 100_000 // how deep page numbers reach; beyond it, use the cursor
)

// BatchBodyBytesMax bounds a decompressed POST /sync/events. It has space for one event
// with the largest body, and its envelope.
const BatchBodyBytesMax = BodyBytesMax + 1<<20
