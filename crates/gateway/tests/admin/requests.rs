//! What is true of every route: bodies, methods, paths.

use crate::stage::{Seen, Stage, in_time, whole};
use axum::body::Body;
use axum::http::Request;
use insta::assert_snapshot;
use serde_json::Value;

async fn send(stage: &Stage, key: &str, content_type: Option<&str>, body: impl Into<Body>) -> Seen {
    let request = Request::builder().method("POST").uri("/admin/v1/tenants").header("host", "127.0.0.1");
    let mut request = request.header("authorization", format!("Bearer {key}"));
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    whole(stage.send(request.body(body.into()).unwrap()).await).await
}

#[tokio::test]
async fn bodies_are_json_and_say_so() {
    in_time(async {
        let stage = Stage::new().await;
        let body = r#"{"name":"initech"}"#;
        assert_snapshot!(send(&stage, &stage.operator, None, body).await.shown(), @r#"
        415 {
          "error": {
            "code": "unsupported_media_type",
            "hint": null,
            "message": "the body must be JSON, with `content-type: application/json`"
          }
        }
        "#);
        for other in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert_eq!(send(&stage, &stage.operator, Some(other), body).await.status, 415, "{other}");
        }
        let json =
            async |body: &str| send(&stage, &stage.operator, Some("application/json"), body.to_owned()).await.shown();
        assert_snapshot!(json("").await, @r#"
        400 {
          "error": {
            "code": "bad_json",
            "hint": null,
            "message": "the body is not JSON: EOF while parsing a value at line 1 column 0"
          }
        }
        "#);
        assert_snapshot!(json("{").await, @r#"
        400 {
          "error": {
            "code": "bad_json",
            "hint": null,
            "message": "the body is not JSON: EOF while parsing an object at line 1 column 1"
          }
        }
        "#);
        assert_snapshot!(json("[]").await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "the body must be a JSON object"
          }
        }
        "#);
        assert_snapshot!(json(r#"{"name":"a"} {"name":"b"}"#).await, @r#"
        400 {
          "error": {
            "code": "bad_json",
            "hint": null,
            "message": "the body is not JSON: trailing characters at line 1 column 14"
          }
        }
        "#);
        assert_snapshot!(json(r#"{"name":"a","name":"b"}"#).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "duplicate field `name` at line 1 column 18"
          }
        }
        "#);
        assert_snapshot!(json(r#"{"name":"a","quota":[]}"#).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`quota`: invalid type: sequence, expected an object at line 1 column 20"
          }
        }
        "#);
        for other in [r#"["initech"]"#, r#""initech""#, "5", "null", "true"] {
            assert!(json(other).await.contains("the body must be a JSON object"), "{other}");
        }
        for deep in ["[".repeat(10_000), format!(r#"{{"name":"a","quota":{}"#, r#"{"burst":"#.repeat(5000))] {
            assert!(json(&deep).await.starts_with('4'));
        }
        let long = format!(r#"{{"name": "a", "weight": "{}"}}"#, "x".repeat(50_000));
        assert!(json(&long).await.len() < 1000, "what was sent is not given back at length");
        let good = send(&stage, &stage.operator, Some("Application/JSON; charset=utf-8"), body).await;
        assert_eq!(good.status, 201);
    })
    .await;
}

#[tokio::test]
async fn bodies_are_bounded() {
    in_time(async {
        let stage = Stage::new().await;
        let large = || format!(r#"{{"name":"{}"}}"#, "x".repeat(64 << 10));
        let json = Some("application/json");
        assert_snapshot!(send(&stage, &stage.operator, json, large()).await.shown(), @r#"
        413 {
          "error": {
            "code": "too_large",
            "hint": null,
            "message": "the body is larger than 64 KiB"
          }
        }
        "#);
        // The same without its length said beforehand.
        let pieces: Vec<_> =
            large().into_bytes().chunks(1000).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
        let body = Body::from_stream(tokio_stream::iter(pieces));
        assert_eq!(send(&stage, &stage.operator, json, body).await.status, 413);
        let broken = tokio_stream::iter([Ok(b"{".to_vec()), Err(std::io::Error::other("gone"))]);
        assert_eq!(send(&stage, &stage.operator, json, Body::from_stream(broken)).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn nothing_is_read_of_a_body_that_nobody_may_send() {
    in_time(async {
        let stage = Stage::new().await;
        for (key, expected) in [("", 401), ("garbage", 401), (stage.acme.admin.as_str(), 403)] {
            let never = Body::from_stream(tokio_stream::pending::<Result<Vec<u8>, std::io::Error>>());
            assert_eq!(send(&stage, key, Some("application/json"), never).await.status, expected, "{key}");
        }
    })
    .await;
}

#[tokio::test]
async fn other_methods_and_other_paths() {
    in_time(async {
        let stage = Stage::new().await;
        assert_snapshot!(stage.get(&stage.operator, "/admin/v1/nothing").await.shown(), @r#"
        404 {
          "error": {
            "code": "not_found",
            "hint": "`/admin/v1/openapi.json` lists the routes",
            "message": "there is no such route"
          }
        }
        "#);
        let seen = stage.ask(&stage.operator, "PUT", "/admin/v1/tenants", None).await;
        assert_snapshot!(seen.shown(), @r#"
        405 {
          "error": {
            "code": "method_not_allowed",
            "hint": "the `allow` header names the methods it has",
            "message": "this route has no such method"
          }
        }
        "#);

        let document = stage.get("", "/admin/v1/openapi.json").await.json();
        for (path, item) in document["paths"].as_object().unwrap() {
            let methods: Vec<String> = item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
            for method in ["GET", "POST", "PATCH", "PUT", "DELETE", "OPTIONS", "TRACE"] {
                if methods.iter().any(|known| known == method) {
                    continue;
                }
                let path = path.replace("{tenant}", "acme").replace("{server}", "prices").replace("{id}", "x");
                let seen = stage.ask(&stage.operator, method, &path, None).await;
                assert_eq!(
                    (seen.status.as_u16(), seen.code().as_str()),
                    (405, "method_not_allowed"),
                    "{method} {path}"
                );
                let allow = seen.headers["allow"].to_str().unwrap();
                let mut allowed: Vec<_> = allow.split(',').filter(|method| *method != "HEAD").collect();
                allowed.sort();
                let mut methods = methods.clone();
                methods.sort();
                assert_eq!(allowed, methods, "{path}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn answers_are_json_and_hold_no_secret_of_others() {
    in_time(async {
        let stage = Stage::new().await;
        for path in ["tenants/acme", "tenants/acme/keys", "tenants/acme/servers", "tenants/acme/calls", "limits"] {
            let seen = stage.get(&stage.acme.admin, &format!("/admin/v1/{path}")).await;
            assert_eq!(seen.headers["content-type"], "application/json", "{path}");
            let _: Value = seen.json();
            for secret in
                [&stage.acme.admin, &stage.acme.call, &stage.globex.call, &"globex".to_owned(), &"vault".to_owned()]
            {
                assert!(!seen.text().contains(secret.as_str()), "{path}");
            }
        }
    })
    .await;
}
