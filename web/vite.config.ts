import { defineConfig } from "vite";

// One script and one style, which the Rust build puts into pages as they are.
export default defineConfig({
  build: {
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    lib: {
      entry: "src/main.ts",
      formats: ["iife"],
      name: "jitterscope",
      fileName: () => "page.js",
      cssFileName: "page",
    },
  },
});
