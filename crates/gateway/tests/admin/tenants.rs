use crate::stage::{Stage, in_time};
use insta::assert_snapshot;
use serde_json::json;

#[tokio::test]
async fn a_tenant_is_made_with_its_keys() {
    in_time(async {
        let stage = Stage::new().await;
        let made = stage.post(&stage.operator, "/admin/v1/tenants", json!({"name": "initech"})).await;
        assert_snapshot!(made.shown(), @r#"
        201 {
          "admin_key": "bh_admin_[secret]",
          "call_key": "bh_call_[secret]",
          "deploy_key": "bh_deploy_[secret]",
          "tenant": "initech"
        }
        "#);
        for key in ["admin_key", "deploy_key", "call_key"] {
            let seen = stage.get(made.json()[key].as_str().unwrap(), "/admin/v1/tenants/initech").await;
            assert_eq!(seen.status, 200, "{key} opens its tenant");
        }
        let order =
            json!({"name": "hooli", "weight": 5, "quota": {"requests_per_s": 2.5, "burst": 10}, "recording": true});
        assert_eq!(stage.post(&stage.operator, "/admin/v1/tenants", order).await.status, 201);
        assert_snapshot!(stage.get(&stage.operator, "/admin/v1/tenants/hooli").await.shown(), @r#"
        200 {
          "approval": false,
          "created_at": "[created_at]",
          "name": "hooli",
          "quota": {
            "burst": 10,
            "concurrent": null,
            "cpu_s_per_min": null,
            "egress_bytes_per_min": null,
            "requests_per_s": 2.5
          },
          "recording": true,
          "servers": 0,
          "weight": 5
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn tenants_that_cannot_be_made() {
    in_time(async {
        let stage = Stage::new().await;
        let make = async |body| stage.post(&stage.operator, "/admin/v1/tenants", body).await.shown();
        assert_snapshot!(make(json!({"name": "acme"})).await, @r#"
        409 {
          "error": {
            "code": "exists",
            "hint": "choose another name, or delete it first",
            "message": "the tenant `acme` exists already"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "Acme Inc"})).await, @r#"
        422 {
          "error": {
            "code": "bad_name",
            "hint": "use 1 to 63 of a-z, 0-9 and -, with no - at either end",
            "message": "`Acme Inc` cannot be the name of a tenant"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "admin"})).await, @r#"
        422 {
          "error": {
            "code": "bad_name",
            "hint": "the host needs this name for itself",
            "message": "`admin` cannot be the name of a tenant"
          }
        }
        "#);
        assert_snapshot!(make(json!({})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "missing field `name` at line 1 column 2"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "a", "colour": "red"})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`colour`: unknown field `colour`, expected one of `name`, `weight`, `quota`, `recording`, `approval` at line 1 column 9"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "a", "quota": {"burst": -1}})).await, @r#"
        422 {
          "error": {
            "code": "bad_body",
            "hint": null,
            "message": "`quota.burst`: invalid value: integer `-1`, expected u32 at line 1 column 31"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "a", "quota": {"requests_per_s": -1.0}})).await, @r#"
        422 {
          "error": {
            "code": "bad_value",
            "hint": null,
            "message": "`requests_per_s` must be a number from 0 on"
          }
        }
        "#);
        assert_snapshot!(make(json!({"name": "a", "weight": 0})).await, @r#"
        422 {
          "error": {
            "code": "bad_value",
            "hint": null,
            "message": "a weight is a number from 1 to 1000"
          }
        }
        "#);
        assert_eq!(stage.registry.directory().tenants.len(), 2, "nothing was made");
    })
    .await;
}

#[tokio::test]
async fn tenants_are_listed_in_pages() {
    in_time(async {
        let stage = Stage::new().await;
        for name in ["hooli", "initech"] {
            stage.post(&stage.operator, "/admin/v1/tenants", json!({"name": name})).await;
        }
        let first = stage.get(&stage.operator, "/admin/v1/tenants?limit=3").await;
        assert_snapshot!(first.shown(), @r#"
        200 {
          "next": "[next]",
          "tenants": [
            {
              "approval": false,
              "created_at": "[created_at]",
              "name": "acme",
              "quota": {
                "burst": null,
                "concurrent": null,
                "cpu_s_per_min": null,
                "egress_bytes_per_min": null,
                "requests_per_s": null
              },
              "recording": false,
              "servers": 2,
              "weight": 1
            },
            {
              "approval": false,
              "created_at": "[created_at]",
              "name": "globex",
              "quota": {
                "burst": null,
                "concurrent": null,
                "cpu_s_per_min": null,
                "egress_bytes_per_min": null,
                "requests_per_s": null
              },
              "recording": false,
              "servers": 1,
              "weight": 1
            },
            {
              "approval": false,
              "created_at": "[created_at]",
              "name": "hooli",
              "quota": {
                "burst": null,
                "concurrent": null,
                "cpu_s_per_min": null,
                "egress_bytes_per_min": null,
                "requests_per_s": null
              },
              "recording": false,
              "servers": 0,
              "weight": 1
            }
          ]
        }
        "#);
        let rest = stage.get(&stage.operator, "/admin/v1/tenants?limit=3&cursor=hooli").await.json();
        assert_eq!(rest["tenants"][0]["name"], "initech");
        assert_eq!(rest["next"], json!(null));
    })
    .await;
}

#[tokio::test]
async fn queries_are_strict() {
    in_time(async {
        let stage = Stage::new().await;
        let list = async |query: &str| stage.get(&stage.operator, &format!("/admin/v1/tenants?{query}")).await.shown();
        assert_snapshot!(list("limit=0").await, @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "`limit` of 0 is not within 1 and 1000"
          }
        }
        "#);
        assert_snapshot!(list("limit=1001").await, @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "`limit` of 1001 is not within 1 and 1000"
          }
        }
        "#);
        assert_snapshot!(list("limit=many").await, @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "the query is not what this route takes: limit: invalid digit found in string"
          }
        }
        "#);
        assert_snapshot!(list("page=2").await, @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "the query is not what this route takes: page: unknown field `page`, expected `limit` or `cursor`"
          }
        }
        "#);
        assert_snapshot!(list("limit=1&limit=2").await, @r#"
        400 {
          "error": {
            "code": "bad_query",
            "hint": null,
            "message": "the query is not what this route takes: duplicate field `limit`"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn what_an_admin_and_what_an_operator_may_change() {
    in_time(async {
        let stage = Stage::new().await;
        let change = async |key: &str, body| stage.ask(key, "PATCH", "/admin/v1/tenants/acme", Some(body)).await;
        let recording = change(&stage.acme.admin, json!({"recording": true})).await;
        assert_snapshot!(recording.shown(), @r#"
        200 {
          "approval": false,
          "created_at": "[created_at]",
          "name": "acme",
          "quota": {
            "burst": null,
            "concurrent": null,
            "cpu_s_per_min": null,
            "egress_bytes_per_min": null,
            "requests_per_s": null
          },
          "recording": true,
          "servers": 2,
          "weight": 1
        }
        "#);
        assert_snapshot!(change(&stage.acme.admin, json!({"weight": 100})).await.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this needs a key with the role `operator`, and this one has `admin`"
          }
        }
        "#);
        assert_snapshot!(change(&stage.acme.admin, json!({"quota": {}, "recording": false})).await.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this needs a key with the role `operator`, and this one has `admin`"
          }
        }
        "#);
        assert!(stage.registry.directory().tenants["acme"].recording, "a change is made as a whole or not at all");
        let seen = change(&stage.operator, json!({"weight": 100, "quota": {"concurrent": 3}})).await;
        assert_eq!((seen.status.as_u16(), seen.json()["quota"]["concurrent"].clone()), (200, json!(3)));
        assert!(stage.registry.directory().tenants["acme"].recording, "what is not named stays");
    })
    .await;
}

#[tokio::test]
async fn a_deleted_tenant_takes_its_keys_with_it() {
    in_time(async {
        let stage = Stage::new().await;
        let seen = stage.ask(&stage.operator, "DELETE", "/admin/v1/tenants/acme", None).await;
        assert_eq!((seen.status.as_u16(), seen.text().as_str()), (204, ""));
        assert_eq!(stage.get(&stage.acme.admin, "/admin/v1/tenants/acme").await.status, 401);
        let again = stage.ask(&stage.operator, "DELETE", "/admin/v1/tenants/acme", None).await;
        assert_snapshot!(again.shown(), @r#"
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
