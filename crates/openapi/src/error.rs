//! Why no server is made of a specification.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiError {
    #[error("there is no file {0} among the given ones")]
    NoFile(String),
    #[error("{file} cannot be read: {message}")]
    Unreadable { file: String, message: String },
    #[error("{file} is no OpenAPI specification: {message}")]
    NoSpecification { file: String, message: String },
    #[error("the base URL {url} cannot be used: {message}; write it like `https://api.example.com/v1`")]
    BaseUrl { url: String, message: String },
    #[error(
        "{operation} has no server with an absolute http or https URL ({message}); \
         pass --base-url, such as `--base-url https://api.example.com/v1`"
    )]
    NoServer { operation: String, message: String },
    #[error("the server variable {name} {message}")]
    Variable { name: String, message: String },
    #[error("the {kind} filter {pattern} matches no operation; there {}", examples(.operations))]
    NoMatch { kind: &'static str, pattern: String, operations: Vec<String> },
    #[error(
        "{selected} operations are selected, and {most} tools are the most; select fewer with filters, \
         by operationId or by `METHOD /path` (`--include 'GET /pets*'`, `--exclude 'admin*'`) or by tag (`--tag pets`)"
    )]
    TooMany { selected: usize, most: usize },
    #[error(
        "{selected} operations are selected, and the first {tools} alone take more than {most} bytes to describe; \
         select fewer with filters, by operationId, `METHOD /path` or tag. The largest (with bytes) are {}", .largest.join(", ")
    )]
    TooLarge { tools: usize, selected: usize, most: usize, largest: Vec<String> },
    #[error("no operation is left to make a tool of{}", listed(.reasons))]
    NoTools { reasons: Vec<String> },
}

fn examples(operations: &[String]) -> String {
    if operations.is_empty() { "are none".to_owned() } else { format!("are {}", operations.join(", ")) }
}

fn listed(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("; {reason}")).collect()
}
