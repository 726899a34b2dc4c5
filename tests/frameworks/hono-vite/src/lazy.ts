export const text = "from a module that is imported when it is needed";
