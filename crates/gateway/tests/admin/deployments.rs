use crate::stage::{Stage, in_time, servers};
use gateway::Settings;
use insta::assert_snapshot;
use registry::Role;
use serde_json::json;
use std::sync::Arc;

const PATH: &str = "/admin/v1/tenants/acme/servers/new/deployments";

#[tokio::test]
async fn a_server_is_deployed() {
    in_time(async {
        let stage = Stage::new().await;
        let draft = stage.draft("new", "export default {}", "boundary = \"server\"\n[limits]\ncpu_ms = 20");
        let made = stage.upload(&stage.acme.deploy, &draft).await;
        assert_snapshot!(made.shown(), @r#"
        201 {
          "deployment": "[deployment]",
          "pending": false,
          "server": "new",
          "surface": {
            "name": "prices",
            "prompts": [],
            "resourceTemplates": [],
            "resources": [],
            "tools": [
              {
                "description": "Doubles a price.",
                "inputSchema": {
                  "type": "object"
                },
                "name": "double"
              },
              {
                "inputSchema": {
                  "type": "object"
                },
                "name": "halve"
              }
            ]
          },
          "url": "http://127.0.0.1:8470/acme/new/mcp"
        }
        "#);
        assert_eq!(stage.wall.asked(), 1, "it was initialised behind the wall first");

        let shown = stage.get(&stage.acme.deploy, PATH).await;
        assert_snapshot!(shown.shown(), @r#"
        200 {
          "deployments": [
            {
              "activated_at": "[activated_at]",
              "approved_at": null,
              "approved_by": null,
              "created_at": "[created_at]",
              "created_by": "[created_by]",
              "current": true,
              "digest": "9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec",
              "id": "[id]",
              "lock_digest": "[lock_digest]",
              "manifest": {
                "boundary": "server",
                "file_name": "server.js",
                "jit": false,
                "limits": {
                  "argument_depth": 64,
                  "argument_kb": 1024,
                  "cpu_ms": 20,
                  "cpu_percent": 50,
                  "host_calls": 64,
                  "init_cpu_ms": 500,
                  "init_time_ms": 10000,
                  "log_kb": 64,
                  "memory_mb": 128,
                  "processes": 50,
                  "result_kb": 1024,
                  "scratch_mb": 32,
                  "source_kb": 4096,
                  "time_ms": 30000
                },
                "wall": "isolate"
              },
              "pending": false,
              "proposal": null,
              "proposed_at": null,
              "proposed_by": null,
              "publishers": [],
              "server": "new",
              "size": 88,
              "state": "current"
            }
          ],
          "next": null
        }
        "#);
        assert_eq!(shown.json()["deployments"][0]["id"], made.json()["deployment"]);

        let again = stage.upload(&stage.acme.deploy, &draft).await;
        assert_eq!((again.status.as_u16(), again.json()), (201, made.json()), "the same is the same");
        assert_eq!(stage.get(&stage.acme.deploy, PATH).await.json()["deployments"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn what_does_not_initialise_is_not_deployed() {
    in_time(async {
        let stage = Stage::new().await;
        let deploy = async |source| stage.upload(&stage.acme.deploy, &stage.draft("new", source, "")).await;
        let thrown = deploy("throw ReferenceError: prise is not defined").await;
        assert_snapshot!(thrown.shown(), @r#"
        422 {
          "error": {
            "code": "init_failed",
            "hint": null,
            "message": "ReferenceError: prise is not defined"
          }
        }
        "#);
        assert_snapshot!(deploy("limit took more than 500 ms of CPU time").await.shown(), @r#"
        422 {
          "error": {
            "code": "init_limit",
            "hint": null,
            "message": "took more than 500 ms of CPU time"
          }
        }
        "#);
        let busy = deploy("busy too much is running").await;
        assert_eq!((busy.status.as_u16(), busy.code().as_str()), (503, "busy"));
        assert!(busy.headers.contains_key("retry-after"));
        assert!(stage.registry.directory().server("acme", "new").is_none(), "nothing was made");
    })
    .await;
}

#[tokio::test]
async fn what_the_host_does_not_allow_is_refused_before_it_runs() {
    in_time(async {
        let mut settings = Settings::default();
        settings.allowance.most.cpu_ms = 100;
        settings.allowance.jit = false;
        let stage = Stage::with(settings, None).await;
        let deploy = async |more: &str| stage.upload(&stage.acme.deploy, &stage.draft("new", "x", more)).await.shown();
        assert_snapshot!(deploy("[limits]\ncpu_ms = 101").await, @r#"
        422 {
          "error": {
            "code": "refused",
            "hint": "GET /admin/v1/limits says what this host allows",
            "message": "`cpu_ms` of 101 is above this host's maximum of 100"
          }
        }
        "#);
        assert_snapshot!(deploy("jit = true").await, @r#"
        422 {
          "error": {
            "code": "refused",
            "hint": "GET /admin/v1/limits says what this host allows",
            "message": "this host does not allow `jit`"
          }
        }
        "#);
        let host = r#"secrets = [{ name = "TOKEN", hosts = ["a.example"], header = "host" }]"#;
        assert_snapshot!(deploy(host).await, @r#"
        422 {
          "error": {
            "code": "refused",
            "hint": null,
            "message": "the binding of secret `TOKEN`: no secret can be put into the header `host`"
          }
        }
        "#);
        let twice = r#"secrets = [{ name = "A", hosts = ["a.example"], header = "x-key" }, { name = "B", hosts = ["*.example.com", "a.example"], header = "x-key" }]"#;
        assert_snapshot!(deploy(twice).await, @r#"
        422 {
          "error": {
            "code": "refused",
            "hint": null,
            "message": "the secrets `A` and `B` would both be put into the header `x-key` for https://a.example; let one of them be asked for"
          }
        }
        "#);
        assert_snapshot!(deploy(r#"egress = ["*"]"#).await, @r#"
        422 {
          "error": {
            "code": "refused",
            "hint": null,
            "message": "rule `*`: opens every host, which only the host's operator may; name those that are needed"
          }
        }
        "#);
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}

#[tokio::test]
async fn names_and_bodies_are_checked_before_anything_runs() {
    in_time(async {
        let stage = Stage::new().await;
        let named = async |name: &str| {
            let path = format!("/admin/v1/tenants/acme/servers/{name}/deployments");
            stage.post(&stage.acme.deploy, &path, json!({"lock": {}, "seal": {}, "files": {}})).await.shown()
        };
        assert_snapshot!(named("Big%20Prices").await, @r#"
        422 {
          "error": {
            "code": "bad_name",
            "hint": "use 1 to 63 of a-z, 0-9 and -, with no - at either end",
            "message": "`Big Prices` cannot be the name of a server"
          }
        }
        "#);
        assert_snapshot!(named("mcp").await, @r#"
        422 {
          "error": {
            "code": "bad_name",
            "hint": "the host needs this name for itself",
            "message": "`mcp` cannot be the name of a server"
          }
        }
        "#);
        let deploy = async |body| stage.post(&stage.acme.deploy, PATH, body).await.shown();
        assert_snapshot!(deploy(json!({})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "missing field `lock` at line 1 column 2"
          }
        }
        "#);
        assert_snapshot!(deploy(json!({"lock": {}, "seal": {}, "files": {"a": 1}})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`files.a`: invalid type: integer `1`, expected a string at line 1 column 15"
          }
        }
        "#);
        assert_snapshot!(deploy(json!({"lock": {}, "seal": {}, "files": {}, "name": "y"})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`name`: unknown field `name`, expected one of `lock`, `seal`, `files` at line 1 column 28"
          }
        }
        "#);
        assert_snapshot!(deploy(json!({"lock": {}, "seal": {}, "files": {}})).await, @r#"
        422 {
          "error": {
            "code": "bad_signature",
            "hint": "nothing was changed; `bulkhead deploy` makes, signs and uploads what belongs together",
            "message": "the lock cannot be read: missing field `version` at line 1 column 2"
          }
        }
        "#);
        assert_eq!(stage.wall.asked(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_large_source_fits_and_a_larger_one_does_not() {
    in_time(async {
        let mut settings = Settings::default();
        settings.allowance.most.source_kb = 32_768;
        let stage = Stage::with(settings, None).await;
        let deploy = async |bytes: usize| {
            let draft = stage.draft("new", &"x".repeat(bytes), "[limits]\nsource_kb = 32768");
            stage.upload(&stage.acme.deploy, &draft).await
        };
        assert_eq!(deploy(32 << 20).await.status, 201);
        assert_snapshot!(deploy(37 << 20).await.shown(), @r#"
        413 {
          "error": {
            "code": "too_large",
            "hint": null,
            "message": "the body is larger than 36 MiB"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn an_earlier_deployment_is_made_current_again() {
    in_time(async {
        let stage = Stage::new().await;
        let first = stage.deploy("acme", "prices", "export default {}");
        let second = stage.deploy("acme", "prices", "export default {} // second");
        let current =
            || stage.registry.directory().server("acme", "prices").unwrap().current.clone().unwrap().id.clone();
        assert_eq!(current(), second.id);
        let path = |id: &str| format!("/admin/v1/tenants/acme/servers/prices/deployments/{id}/activate");
        let active = stage.ask(&stage.acme.deploy, "POST", &path(&first.id), None).await;
        assert_snapshot!(active.shown(), @r#"
        200 {
          "activated_at": "[activated_at]",
          "approved_at": null,
          "approved_by": null,
          "created_at": "[created_at]",
          "created_by": "[created_by]",
          "current": true,
          "digest": "9aeb8d59b4d483ca6298e9a450fbf37dfd2b4c63990135ab1d040d76314087ec",
          "id": "[id]",
          "lock_digest": "[lock_digest]",
          "manifest": {
            "boundary": "call",
            "file_name": "server.js",
            "jit": false,
            "limits": {
              "argument_depth": 64,
              "argument_kb": 1024,
              "cpu_ms": 50,
              "cpu_percent": 50,
              "host_calls": 64,
              "init_cpu_ms": 500,
              "init_time_ms": 10000,
              "log_kb": 64,
              "memory_mb": 128,
              "processes": 50,
              "result_kb": 1024,
              "scratch_mb": 32,
              "source_kb": 4096,
              "time_ms": 30000
            },
            "wall": "isolate"
          },
          "pending": false,
          "proposal": null,
          "proposed_at": null,
          "proposed_by": null,
          "publishers": [],
          "server": "prices",
          "size": 48,
          "state": "current"
        }
        "#);
        assert_eq!(current(), first.id);
        let page =
            stage.get(&stage.acme.deploy, "/admin/v1/tenants/acme/servers/prices/deployments?limit=1").await.json();
        assert_eq!(
            (&page["deployments"][0]["id"], &page["next"]),
            (&json!(second.id), &json!(second.id)),
            "newest first"
        );
        assert_eq!(page["deployments"][0]["current"], false);

        let one = |id: &str| format!("/admin/v1/tenants/acme/servers/prices/deployments/{id}");
        let shown = stage.get(&stage.acme.deploy, &one(&second.id)).await.json();
        assert_eq!((&shown["id"], &shown["current"]), (&json!(second.id), &json!(false)));
        assert_eq!(
            shown["surface"].to_string(),
            second.surface.get().parse::<serde_json::Value>().unwrap().to_string()
        );

        let foreign = stage.deploy("globex", "vault", "export default {} // theirs");
        for id in ["nothing", &foreign.id] {
            assert_eq!(stage.ask(&stage.acme.deploy, "POST", &path(id), None).await.status, 404);
            assert_eq!(stage.get(&stage.acme.deploy, &one(id)).await.status, 404);
        }
        assert_eq!(current(), first.id);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_longer_allowed_is_not_activated() {
    in_time(async {
        let stage = Stage::new().await;
        let first = stage.deploy("acme", "prices", "export default {}");
        stage.deploy("acme", "prices", "export default {} // second");
        let mut settings = Settings::default();
        settings.allowance.most.cpu_ms = 10;
        stage.app.apply(settings).unwrap();
        let path = format!("/admin/v1/tenants/acme/servers/prices/deployments/{}/activate", first.id);
        let refused = stage.ask(&stage.acme.deploy, "POST", &path, None).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (422, "refused"));
    })
    .await;
}

#[tokio::test]
async fn a_scope_says_which_servers_may_be_deployed() {
    in_time(async {
        let stage = Stage::new().await;
        let (_, key) = stage.key(Some("acme"), Role::Deploy, servers(&["new"]), None);
        assert_eq!(stage.upload(key.expose(), &stage.draft("new", "x", "")).await.status, 201);
        let other = stage.draft("other", "x", "");
        assert_eq!(stage.upload(key.expose(), &other).await.status, 404);
        // Nor is its seal good for that, whoever brings it.
        let path = "/admin/v1/tenants/acme/servers/other/deployments";
        let brought = stage.post(&stage.acme.deploy, path, other.order(&stage.registry, key.expose())).await;
        assert_eq!((brought.status.as_u16(), brought.code().as_str()), (422, "bad_signature"));
    })
    .await;
}

#[tokio::test]
async fn deployments_of_one_server_come_one_after_the_other() {
    in_time(async {
        let stage = Arc::new(Stage::new().await);
        let deploy = |server: &str, text: usize| {
            let (stage, draft) = (stage.clone(), stage.draft(server, &format!("// {text}"), ""));
            tokio::spawn(async move { stage.upload(&stage.acme.deploy, &draft).await.status.as_u16() })
        };
        // All of them were made for the same step, so one of them is first and the others are too late.
        let same = futures_util::future::join_all((0..4).map(|i| deploy("new", i))).await;
        let mut same: Vec<_> = same.into_iter().map(|status| status.unwrap()).collect();
        same.sort();
        assert_eq!(same, [201, 409, 409, 409]);
        assert_eq!(stage.wall.most_at_once(), 1);
        assert_eq!(stage.registry.deployments("acme", "new").unwrap().len(), 1);

        // So many at once are too many for one tenant; the rest is told to come back.
        let many = futures_util::future::join_all((0..12).map(|i| deploy(&format!("new-{i}"), i))).await;
        let mut many: Vec<_> = many.into_iter().map(|status| status.unwrap()).collect();
        many.sort();
        assert!(many.contains(&201) && many.contains(&503), "{many:?}");
        assert!((2..=4).contains(&stage.wall.most_at_once()), "{}", stage.wall.most_at_once());
    })
    .await;
}

/// With the rule that names it, and before the code is run.
#[tokio::test]
async fn addresses_that_are_never_reached_are_refused() {
    in_time(async {
        let stage = Stage::new().await;
        for (rule, why) in [
            ("http://169.254.169.254", "cloud metadata"),
            ("10.1.2.3:8443", "10.0.0.0/8"),
            ("http://127.0.0.1:3000", "127.0.0.0/8"),
            ("http://localhost:3000", "a name for the machine itself"),
        ] {
            let more = format!("egress = [\"api.example.com\", \"{rule}\"]");
            let refused = stage.upload(&stage.acme.deploy, &stage.draft("new", "export default {}", &more)).await;
            assert_eq!((refused.status.as_u16(), refused.code().as_str()), (422, "refused"), "{rule}");
            let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("rule `http") && message.contains("is never reached: "), "{message}");
            assert!(message.contains(why), "{message}");
        }
        assert_eq!(stage.wall.asked(), 0);
        let next = stage.get(&stage.acme.deploy, "/admin/v1/tenants/acme/servers/new/next").await.json();
        assert_eq!((&next["loopback"], &next["step"]), (&json!([]), &json!(1)), "nothing was changed");
        let more = "egress = [\"api.example.com\", \"8.8.8.8\"]";
        let made = stage.upload(&stage.acme.deploy, &stage.draft("new", "export default {}", more)).await;
        assert_eq!(made.status, 201, "{}", made.text());
    })
    .await;
}
