import { createRoot } from "react-dom/client";
import { useEffect, useState } from "react";
import "./style.css";

function App() {
  const [count, setCount] = useState(0);
  const [greeting, setGreeting] = useState("…");
  useEffect(() => {
    fetch("/api/greeting")
      .then((response) => response.json())
      .then(({ text }) => setGreeting(text));
  }, []);
  return (
    <main>
      <h1>{greeting}</h1>
      <p id="path">{location.pathname}</p>
      <button onClick={() => setCount(count + 1)}>clicked {count}</button>
    </main>
  );
}

createRoot(document.getElementById("root")).render(<App />);
