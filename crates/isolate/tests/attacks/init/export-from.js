// attack: Re-exports from a module of the host instead of importing it.
// expect: init_failed

export * from "node:process";

export { default } from "file:///etc/hostname";
