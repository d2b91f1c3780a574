use crate::stage::{Stage, in_time};
use gateway::Settings;
use insta::assert_snapshot;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test]
async fn limits_are_for_everybody_with_a_key() {
    in_time(async {
        let mut settings = Settings::default();
        settings.allowance.most.cpu_ms = 100;
        settings.allowance.jit = false;
        let stage = Stage::with(settings, None).await;
        let limits = stage.get(&stage.acme.call, "/admin/v1/limits").await.json();
        assert_eq!((&limits["most"]["cpu_ms"], &limits["jit"]), (&json!(100), &json!(false)));
        assert_eq!(limits["least"], serde_json::to_value(policy::Limits::LEAST).unwrap());
        assert_eq!(limits["default"], serde_json::to_value(policy::Limits::default()).unwrap());
    })
    .await;
}

#[tokio::test]
async fn the_host_is_for_its_operator() {
    in_time(async {
        let stage = Stage::new().await;
        assert_snapshot!(stage.get(&stage.operator, "/admin/v1/host").await.shown(), @r#"
        200 {
          "problems": [],
          "servers": 3,
          "tenants": 2,
          "uptime_s": "[uptime_s]",
          "version": "[version]",
          "walls": {
            "isolate": {
              "deployments": 0,
              "longest_line": 0,
              "running": 0,
              "shared": 0,
              "spares": 0,
              "waiting": 0
            }
          }
        }
        "#);
        assert_snapshot!(stage.get(&stage.acme.admin, "/admin/v1/host").await.shown(), @r#"
        403 {
          "error": {
            "code": "forbidden",
            "hint": null,
            "message": "this needs a key with the role `operator`, and this one has `admin`"
          }
        }
        "#);
    })
    .await;
}

#[tokio::test]
async fn the_head_of_the_audit_log_moves_with_each_change() {
    in_time(async {
        let stage = Stage::new().await;
        let before = stage.get(&stage.operator, "/admin/v1/audit/head").await.json();
        assert_eq!(before["hash"].as_str().unwrap().len(), 64);
        stage.post(&stage.operator, "/admin/v1/tenants", json!({"name": "initech"})).await;
        let after = stage.get(&stage.operator, "/admin/v1/audit/head").await.json();
        assert!(after["seq"].as_u64() > before["seq"].as_u64() && after["hash"] != before["hash"]);
    })
    .await;
}

#[tokio::test]
async fn the_configuration_is_read_again() {
    in_time(async {
        let stage = Stage::new().await;
        assert_snapshot!(stage.ask(&stage.operator, "POST", "/admin/v1/reload", None).await.shown(), @r#"
        422 {
          "error": {
            "code": "bad_configuration",
            "hint": "nothing was changed; `bulkhead config check` says more",
            "message": "this host has no configuration to reload"
          }
        }
        "#);

        let most = Arc::new(AtomicU64::new(0));
        let read = most.clone();
        let reloader = Box::new(move || match read.load(Ordering::Relaxed) {
            0 => Err("`limits.cpu_ms` must not be 0".to_owned()),
            most => {
                let mut settings = Settings::default();
                settings.allowance.most.cpu_ms = most;
                Ok(gateway::Reloaded { settings, at_start: vec!["listen".to_owned()] })
            }
        });
        let stage = Stage::with(Settings::default(), Some(reloader)).await;
        let reload = async || stage.ask(&stage.operator, "POST", "/admin/v1/reload", None).await;
        assert_snapshot!(reload().await.shown(), @r#"
        422 {
          "error": {
            "code": "bad_configuration",
            "hint": "nothing was changed; `bulkhead config check` says more",
            "message": "`limits.cpu_ms` must not be 0"
          }
        }
        "#);
        most.store(77, Ordering::Relaxed);
        assert_eq!(reload().await.json()["at_start"], serde_json::json!(["listen"]));
        assert_eq!(stage.get(&stage.acme.call, "/admin/v1/limits").await.json()["most"]["cpu_ms"], 77);
    })
    .await;
}
