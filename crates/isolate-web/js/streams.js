export * from "npm:web-streams-polyfill";
