/**
 * Files that the bundler embeds: an import gives a path that `readFileSync` can open, also in the
 * binary.
 */
declare module "*.bin" {
  const path: string;
  export default path;
}
declare module "*.gguf" {
  const path: string;
  export default path;
}
