use crate::stage::{Stage, in_time, servers};
use insta::assert_snapshot;
use registry::{Role, Scope};
use serde_json::json;

#[tokio::test]
async fn servers_are_listed_and_shown() {
    in_time(async {
        let stage = Stage::new().await;
        let list = stage.get(&stage.acme.call, "/admin/v1/tenants/acme/servers?limit=1").await;
        assert_snapshot!(list.shown(), @r#"
        200 {
          "next": "[next]",
          "servers": [
            {
              "created_at": "[created_at]",
              "current": {
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
              },
              "name": "prices",
              "proposals": [],
              "quarantine": null,
              "state": "ready",
              "tenant": "acme",
              "url": "http://127.0.0.1:8470/acme/prices/mcp"
            }
          ]
        }
        "#);
        let rest = stage.get(&stage.acme.call, "/admin/v1/tenants/acme/servers?cursor=prices").await.json();
        assert_eq!(rest["servers"][0]["name"], "stock");
        let one = stage.get(&stage.acme.call, "/admin/v1/tenants/acme/servers/prices").await;
        assert_eq!(one.json()["surface"]["tools"][1]["name"], "halve");
        assert_eq!(one.json()["current"], list.json()["servers"][0]["current"]);
        assert_snapshot!(stage.get(&stage.acme.call, "/admin/v1/tenants/acme/servers/nothing").await.shown(), @r#"
        404 {
          "error": {
            "code": "not_found",
            "hint": "check the names, and that the key belongs to this tenant and may use this server",
            "message": "nothing with this name is here"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn a_scope_hides_servers_and_tools() {
    in_time(async {
        let stage = Stage::new().await;
        let (_, stock) = stage.key(Some("acme"), Role::Call, servers(&["stock"]), None);
        let list = stage.get(stock.expose(), "/admin/v1/tenants/acme/servers").await.json();
        assert_eq!(list["servers"].as_array().unwrap().len(), 1);
        assert_eq!(list["servers"][0]["name"], "stock");
        assert_eq!(stage.get(stock.expose(), "/admin/v1/tenants/acme").await.json()["servers"], 1);

        let scope = Scope { servers: None, tools: Some(vec!["prices/double".to_owned()]) };
        let (_, double) = stage.key(Some("acme"), Role::Call, scope, None);
        let one = stage.get(double.expose(), "/admin/v1/tenants/acme/servers/prices").await.json();
        let tools: Vec<_> = one["surface"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(tools, [&json!("double")]);
        assert_eq!(stage.get(double.expose(), "/admin/v1/tenants/acme/servers/stock").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn a_deleted_server_is_gone() {
    in_time(async {
        let stage = Stage::new().await;
        let path = "/admin/v1/tenants/acme/servers/prices";
        let refused = stage.ask(&stage.acme.deploy, "DELETE", path, None).await;
        assert_snapshot!(refused.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this needs a key with the role `admin`, and this one has `deploy`"
          }
        }
        "#);
        assert_eq!(stage.ask(&stage.acme.admin, "DELETE", path, None).await.status, 204);
        for suffix in ["", "/deployments", "/logs"] {
            assert_eq!(stage.get(&stage.acme.admin, &format!("{path}{suffix}")).await.status, 404);
        }
        assert_eq!(stage.ask(&stage.acme.admin, "DELETE", path, None).await.status, 404);
    })
    .await;
}
