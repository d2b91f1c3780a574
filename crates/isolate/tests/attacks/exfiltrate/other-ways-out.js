// attack: Looks for every other way a web page can send something.
// expect: ok
// result: {"found":[]}

export default {
  tools: {
    attack: {
      description: "other ways out",
      input: { type: "object" },
      async run() {
        const names = [
          "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource", "RTCPeerConnection", "Image", "Audio",
          "Worker", "SharedWorker", "ServiceWorker", "BroadcastChannel", "importScripts", "open", "postMessage", "Notification",
          "PushManager", "BackgroundFetchManager", "Cache", "CacheStorage", "ReportingObserver", "FontFace", "SharedStorage", "fetchLater",
        ];
        const found = names.filter((name) => typeof globalThis[name] !== "undefined");
        if (typeof globalThis.navigator?.sendBeacon === "function") found.push("sendBeacon");
        return { found };
      },
    },
  },
};
