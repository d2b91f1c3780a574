//! Where requests go, and with which credentials.

use crate::run::run;
use crate::{entries, fixture, made, one, spec, tool};
use openapi::{OpenApiError, Options, Place, SecretBinding, convert};
use serde_json::{Value, json};

fn served(servers: Value, options: &Options) -> Result<openapi::Converted, OpenApiError> {
    convert(&spec("3.0.0", json!({ "/x": { "get": {} } }), json!({ "servers": servers })), "api.yaml", options)
}

fn base(servers: Value) -> String {
    served(servers, &Options::default()).unwrap().endpoints[0].base_url.clone()
}

#[test]
fn the_first_absolute_server_counts() {
    assert_eq!(
        base(
            json!([{ "url": "/v1" }, { "url": "wss://a.example" }, { "url": "https://b.example/" }, { "url": "https://c.example" }])
        ),
        "https://b.example"
    );
    let variables = json!({ "host": { "default": "d.example" }, "port": { "default": 8443 } });
    assert_eq!(base(json!([{ "url": "https://{host}:{port}/x", "variables": variables }])), "https://d.example:8443/x");
    let converted = served(
        json!([{ "url": "/v1" }, { "url": "https://b.example" }, { "url": "https://c.example" }]),
        &Options::default(),
    )
    .unwrap();
    assert!(
        entries(&converted, "/servers/0").starts_with("ignored")
            && entries(&converted, "/servers/2").starts_with("ignored")
    );
}

#[test]
fn the_nearest_level_counts() {
    let paths = json!({
        "/a": { "servers": [{ "url": "https://path.example" }], "get": { "operationId": "a", "servers": [{ "url": "https://op.example:81" }] }, "put": { "operationId": "b" } },
        "/c": { "get": { "operationId": "c" } },
    });
    let converted = made(&spec("3.0.0", paths.clone(), json!({}))).unwrap();
    let bases: Vec<&str> = converted.endpoints.iter().map(|endpoint| endpoint.base_url.as_str()).collect();
    assert_eq!(bases, ["https://op.example:81", "https://path.example", "https://api.example.com/v1"]);
    assert_eq!(converted.egress, ["api.example.com", "op.example:81", "path.example"]);
    let options = Options { base_url: Some("http://own.example/".to_owned()), ..Options::default() };
    let converted = convert(&spec("3.0.0", paths, json!({})), "api.yaml", &options).unwrap();
    assert!(converted.endpoints.iter().all(|endpoint| endpoint.base_url == "http://own.example"));
    assert_eq!(converted.egress, ["own.example"]);
}

#[test]
fn without_a_base_the_error_says_what_to_do() {
    for servers in [
        json!([{ "url": "/v1" }]),
        json!([]),
        json!(7),
        json!([{}]),
        json!([{ "url": "https://{x}" }]),
        json!([{ "url": "https://u:p@h.example" }]),
    ] {
        let error = served(servers.clone(), &Options::default()).unwrap_err();
        assert!(
            matches!(error, OpenApiError::NoServer { .. }) && error.to_string().contains("--base-url"),
            "{servers}: {error}"
        );
    }
    for url in ["/v1", "ftp://a.example", "https://u:p@a.example", "https://a.example?x=1", "nonsense"] {
        let options = Options { base_url: Some(url.to_owned()), ..Options::default() };
        assert!(matches!(served(json!([]), &options), Err(OpenApiError::BaseUrl { .. })), "{url}");
    }
}

#[test]
fn variables_are_options() {
    let files = one(fixture("petstore.yaml"));
    let with = |name: &str, value: &str| {
        let server_variables = [(name.to_owned(), value.to_owned())].into();
        convert(&files, "api.yaml", &Options { server_variables, ..Options::default() })
    };
    assert_eq!(with("region", "us").unwrap().endpoints[1].base_url, "https://us.shelter.example/v2");
    let error = with("region", "moon").unwrap_err();
    assert!(error.to_string().contains("may be `eu`, `us`"), "{error}");
    assert!(with("rejion", "us").unwrap_err().to_string().contains("in no server"));
}

#[test]
fn the_shelter_as_a_whole() {
    let converted = made(&one(fixture("petstore.yaml"))).unwrap();
    assert_eq!((converted.name.as_str(), converted.version.as_str(), converted.tools), ("pet-shelter", "2.4.0", 7));
    assert_eq!(converted.egress, ["eu.shelter.example", "papers.shelter.example:8443"]);
    let binding = |name: &str, place: Place, host: &str, scheme: &str| SecretBinding {
        name: name.to_owned(),
        place,
        host: host.to_owned(),
        scheme: scheme.to_owned(),
    };
    let key = || Place::Header("x-keeper-key".to_owned());
    let expected = [
        binding("DIRECTOR", Place::Bearer, "eu.shelter.example", "director"),
        binding("KEEPER", key(), "eu.shelter.example", "keeper"),
        binding("KEEPER", key(), "papers.shelter.example:8443", "keeper"),
    ];
    assert_eq!(converted.secrets, expected);
    assert_eq!(tool(&converted, "getPet")["request"]["credentials"], json!([]));
    assert!(entries(&converted, "/paths/~1pets/post/callbacks").starts_with("ignored"));
    assert!(entries(&converted, "/info/contact").starts_with("ignored"));
    assert!(entries(&converted, "/components/schemas/Pet/xml").starts_with("ignored"));
    assert!(entries(&converted, "/components/schemas/Pet/properties/id").contains("only read"));
    assert!(entries(&converted, "/tags/0/description").starts_with("ignored"));
    assert!(entries(&converted, "/paths/~1pets/get/responses/200/content/application~1xml").starts_with("ignored"));
    assert!(entries(&converted, "/paths/~1pets/get/responses/200/headers").starts_with("ignored"));
}

#[test]
fn credentials_are_marked_where_they_go() {
    let schemes = json!({
        "bearer": { "type": "http", "scheme": "Bearer" }, "basic": { "type": "http", "scheme": "basic" },
        "inHeader": { "type": "apiKey", "in": "header", "name": "X-Key" }, "in query": { "type": "apiKey", "in": "query", "name": "api key" },
        "cookie": { "type": "apiKey", "in": "cookie", "name": "sid" }, "oidc": { "type": "openIdConnect", "openIdConnectUrl": "x" },
    });
    let operation = |id: &str, security: Value| {
        json!({ "operationId": id, "security": security, "parameters": [
        { "name": "x-key", "in": "header", "schema": {} }, { "name": "api key", "in": "query", "schema": {} }, { "name": "c", "in": "cookie", "schema": {} }] })
    };
    let paths = json!({
        "/a": { "get": operation("bearer", json!([{ "bearer": [] }])), "put": operation("basic", json!([{ "basic": [] }])), "post": operation("oidc", json!([{ "oidc": ["a"] }])) },
        "/b": { "get": operation("header", json!([{ "inHeader": [] }])), "put": operation("query", json!([{ "in query": [] }])), "post": operation("cookie", json!([{ "cookie": [], "bearer": [] }])) },
        "/c": { "get": operation("optional", json!([{ "bearer": [] }, {}])), "put": operation("none", json!([])) },
    });
    let files =
        spec("3.0.0", paths, json!({ "security": [{ "bearer": [] }], "components": { "securitySchemes": schemes } }));
    let names = ["bearer", "basic", "oidc", "header", "query", "cookie", "optional", "none"];
    let calls: Vec<Value> = names
        .iter()
        .map(|name| json!({ "tool": name, "input": { "x-key": "mine", "api_key": "mine", "c": "d" } }))
        .collect();
    let ran = run(&files, calls.into());
    let header = |index: usize, name: &str| ran.calls[index].request().headers.get(name).map(String::as_str);
    assert_eq!(header(0, "authorization"), Some("Bearer {{secret:BEARER}}"));
    assert_eq!(header(1, "authorization"), Some("Basic {{secret:BASIC}}"));
    assert_eq!(header(2, "authorization"), Some("Bearer {{secret:OIDC}}"));
    assert_eq!(header(3, "x-key"), Some("{{secret:IN_HEADER}}"));
    // What the caller sends never stands beside the credential.
    assert_eq!(ran.calls[4].request().line, "PUT /v1/b?api%20key={{secret:IN_QUERY}} HTTP/1.1");
    assert_eq!(header(5, "cookie"), Some("c=d; sid={{secret:COOKIE}}"));
    assert_eq!(header(5, "authorization"), Some("Bearer {{secret:BEARER}}"));
    assert_eq!((header(6, "authorization"), header(7, "authorization")), (None, None));
    assert!(entries(&ran.converted, "/paths/~1c/get/security").contains("optional"));
    assert!(entries(&ran.converted, "/paths/~1b/get/parameters/0").contains("credential"));
    let shown = serde_json::to_value(&ran.converted.secrets).unwrap();
    assert!(shown[4]["place"] == json!({ "in": "query", "name": "api key" }), "{shown:#}");
    assert_eq!(ran.converted.secrets.len(), 6);
}

#[test]
fn credentials_that_cannot_be_sent() {
    let schemes = json!({
        "tls": { "type": "mutualTLS" }, "digest": { "type": "http", "scheme": "digest" }, "bearer": { "type": "http", "scheme": "bearer" },
        "bad": { "type": "apiKey", "in": "header", "name": "a\r\nb" }, "basic": { "type": "http", "scheme": "basic" },
    });
    let paths = json!({
        "/a": { "get": { "security": [{ "tls": [] }, { "bearer": [] }] } },
        "/b": { "get": { "security": [{ "digest": [] }] } },
        "/c": { "get": { "security": [{ "nobody": [] }] } },
        "/d": { "get": { "security": [{ "bad": [] }] } },
        "/e": { "get": { "security": [{ "bearer": [], "basic": [] }] } },
    });
    let converted = made(&spec("3.1.0", paths, json!({ "components": { "securitySchemes": schemes } }))).unwrap();
    assert_eq!((converted.tools, converted.secrets.len()), (1, 1));
    assert_eq!(converted.report.refused().count(), 4, "{:?}", converted.report);
    assert!(entries(&converted, "/components/securitySchemes/tls").starts_with("ignored"));
}
