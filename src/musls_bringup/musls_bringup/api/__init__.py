"""The functions of `import musls`."""
