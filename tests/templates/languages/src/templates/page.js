a page that ends (with no script
