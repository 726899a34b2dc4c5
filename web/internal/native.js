// The functions C++ gives. The engine compiles the bundle as the body of a function whose one parameter is `native`, so it is
// a free variable here and nowhere else, and no worker can reach it.
const functions = native;

export { functions as native };
