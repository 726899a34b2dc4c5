"""Analytics Engine: data points that workers write, and SQL over them."""
