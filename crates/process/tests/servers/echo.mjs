// Gives back what its tool `run` is given.
import { serve } from "./mcp.mjs";

await serve((given) => given);
