// The functions that C++ provides. The engine compiles the bundle as the body of a function with the parameter `native`, so the
// name is a free variable here and no worker can reach it.
const functions = native;

export { functions as native };
